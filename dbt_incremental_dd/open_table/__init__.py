"""Open tables: a collection's present rows in a format that other engines read, kept by what changes."""
