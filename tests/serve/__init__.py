"""Serving collections."""
