"""Errors that users see: what is wrong, where, and what to do about it.

Every error names its subject (a model, source, column or file) in its message and carries a remedy.
"""

from __future__ import annotations


class DifferentialError(Exception):
    """Base of all errors of this package. ``remedy`` says what the user can do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  {self.remedy}" if self.remedy else self.message


class ConfigError(DifferentialError):
    """A model's, source's or profile's configuration cannot be honoured."""


class SessionError(DifferentialError):
    """There is no Spark session, and none can be started."""


class UnsupportedSQL(DifferentialError):
    """A construct has no differential form. ``construct`` names it, for ``explain`` and the run log."""

    def __init__(self, construct: str, remedy: str = "") -> None:
        super().__init__(construct, remedy)
        self.construct = construct


class SourceError(DifferentialError):
    """A source's records, files or relation cannot be read as its envelope says."""


class SinkError(DifferentialError):
    """A collection's changes cannot be written to where they are published."""


class FrontierError(DifferentialError):
    """A time lies outside the frontiers that a request needs, or a frontier would go back."""


class CommitConflict(DifferentialError):
    """Another writer has moved the same frontier first; nothing of this commit is visible."""


class QueryError(DifferentialError):
    """A model's SQL fails on the data that there is: a cast, a division, a function of the user's."""


class ContractError(DifferentialError):
    """A model's rows would violate a constraint of its contract."""


class ColumnsError(DifferentialError):
    """A model's columns are not those of its contract: pairs of name and type, ``declared`` and ``found``."""

    def __init__(self, message: str, declared: list[tuple[str, str]], found: list[tuple[str, str]]) -> None:
        super().__init__(message, "Correct the SQL, or the columns in the contract.")
        self.declared = declared
        self.found = found


class QueryCanceled(QueryError):
    """A statement has been ended before it was done: by its client, its time limit, or for want of memory."""


class ServerBusy(DifferentialError):
    """A server computes and keeps waiting as many statements as it may."""


class RecursionLimit(DifferentialError):
    """A recursive model does not come to a fixed point in as many iterations as it may take."""


class StateError(DifferentialError):
    """What is stored under ``state_root`` is missing, damaged, or not writable."""
