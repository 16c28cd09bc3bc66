"""Sinks: collections' changes written to other systems."""
