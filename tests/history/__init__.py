"""Histories of rows, against one that is kept by hand."""
