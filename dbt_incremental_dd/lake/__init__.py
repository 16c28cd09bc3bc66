"""Formats of lake tables that are read as sources and written as open tables."""
