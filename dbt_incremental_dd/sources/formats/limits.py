"""How much of a file is read on the driver."""

MOST_BYTES = 4_000_000
"""Of lines that are read on the driver where a session is open; more are Spark's."""
