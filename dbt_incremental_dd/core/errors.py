"""Errors for users: what is wrong, where, and what to do.

Every error names its subject (a model, source, column or file) in its message, and has a remedy.
"""

from __future__ import annotations


class DifferentialError(Exception):
    """Base class of this package's errors. ``remedy``: what the user can do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  {self.remedy}" if self.remedy else self.message


class ConfigError(DifferentialError):
    """The configuration of a model, source or profile is invalid or not supported."""


class SessionError(DifferentialError):
    """There is no Spark session, and none can be started."""


class UnsupportedSQL(DifferentialError):
    """A construct has no differential form. ``construct`` names it, for ``explain`` and the run log."""

    def __init__(self, construct: str, remedy: str = "") -> None:
        super().__init__(construct, remedy)
        self.construct = construct


class SourceError(DifferentialError):
    """A source's records, files or relation cannot be read as configured."""


class SinkError(DifferentialError):
    """A collection's changes cannot be written to a sink."""


class FrontierError(DifferentialError):
    """A time is outside of a collection's frontiers, or a frontier would go back."""


class CommitConflict(DifferentialError):
    """Another writer has advanced the same frontier first; nothing of this commit is visible."""


class QueryError(DifferentialError):
    """SQL fails on the data, for example in a cast, a division or a user's function, or a statement is invalid."""


class ConditionError(DifferentialError):
    """The condition on the rows that a reader may read of a collection cannot be computed. The reader learns nothing of
    it; the log has the reason."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} cannot be read: the rights to its rows are wrong", "Tell whoever runs the server.")


class ContractError(DifferentialError):
    """A model's rows violate a constraint of its contract."""


class AdoptionError(DifferentialError):
    """The rows of a table that a model is to adopt are not those of its query."""


class ColumnsError(DifferentialError):
    """A model's columns differ from its contract: pairs of name and type, ``declared`` and ``found``."""

    def __init__(self, message: str, declared: list[tuple[str, str]], found: list[tuple[str, str]]) -> None:
        super().__init__(message, "Correct the SQL, or the columns in the contract.")
        self.declared = declared
        self.found = found


class QueryCanceled(QueryError):
    """A statement was interrupted: by its client, its time limit, or for lack of memory."""


class ServerBusy(DifferentialError):
    """A server already runs and queues as many statements as it may."""


class RecursionLimit(DifferentialError):
    """A recursive model does not reach a fixed point within its limit of iterations."""


class StateError(DifferentialError):
    """What is stored under ``state_root`` is missing, damaged or not writable."""
