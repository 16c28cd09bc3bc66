"""Texts and values of records, as the formats of files and messages have them."""
