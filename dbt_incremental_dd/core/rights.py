"""What a reader may read: collections by patterns of their names, and of some only the rows that a condition selects.

A reader has grants, which add up: it may read what one of them lets it read. Within a grant, all conditions whose
pattern matches a collection apply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dbt_incremental_dd.core.own import PREFIX, is_own


def names(patterns: Sequence[str], name: str) -> bool:
    """Whether one of the patterns, in lower case, is of this full name."""
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)


@dataclass(frozen=True)
class Grant:
    """``read``: patterns of collections' full names, in lower case, with ``*``, ``?`` and ``[...]``. ``rows``: such
    patterns, each with a condition on a collection's columns in DuckDB's SQL."""

    read: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()

    def may_read(self, name: str) -> bool:
        """Whether it lets read the collection of this full name. What tells of runs has names, SQL and errors of all
        collections: a pattern has to begin as its name does."""
        patterns = [pattern for pattern in self.read if pattern.startswith(PREFIX)] if is_own(name) else self.read
        return names(patterns, name)

    def conditions(self, name: str) -> list[str]:
        """All conditions on the collection's rows."""
        return [condition for pattern, condition in self.rows if fnmatchcase(name.lower(), pattern)]


@dataclass(frozen=True)
class Rights:
    """The grants of one reader. Equal rights are equal values."""

    grants: tuple[Grant, ...] = ()

    def may_read(self, name: str) -> bool:
        """Whether the collection of this full name exists for the reader."""
        return self == EVERYTHING or any(grant.may_read(name) for grant in self.grants)

    def condition(self, name: str) -> str | None:
        """The condition that selects the collection's rows; None if all may be read. ``false`` for a collection that
        may not be read."""
        if self == EVERYTHING:
            return None
        ways = [grant.conditions(name) for grant in self.grants if grant.may_read(name)]
        if any(not conditions for conditions in ways):
            return None
        return _joined([_joined(conditions, "AND") for conditions in ways], "OR") if ways else "false"

    @property
    def has_conditions(self) -> bool:
        """Whether there is a condition on rows of any collection."""
        return any(grant.rows for grant in self.grants)


EVERYTHING = Rights((Grant(("*",)),))
"""All rows of all collections."""


def _joined(conditions: Sequence[str], word: str) -> str:
    """Each is on lines of its own, so that a comment ends with its condition."""
    return f" {word} ".join(f"(\n{condition}\n)" for condition in conditions)
