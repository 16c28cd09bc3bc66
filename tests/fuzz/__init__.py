"""Random queries over random tables and changes."""
