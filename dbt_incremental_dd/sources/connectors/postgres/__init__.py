"""A table of PostgreSQL as a source: a consistent copy at first, and then the server's own log."""
