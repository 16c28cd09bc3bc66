"""Subscriptions to collections: their contents, and every later change."""
