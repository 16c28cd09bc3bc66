"""What is wrong with a database, and what to do."""

from __future__ import annotations


class DatabaseError(Exception):
    """What is wrong with a server, its log or a table, and what to do. Names no source: several may be concerned."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class ResyncRequired(Exception):
    """The changes cannot be told from the log alone, for the reason that it has; the table has to be copied again."""
