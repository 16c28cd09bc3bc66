"""The one position in a database's log up to which a run reads all its tables.

Tables that follow the log have their changes from it, up to that position. Where one is new, or has changed in a way
that the log does not tell of, it is a position at which the server shows a snapshot, and the table is copied as of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError
from dbt_incremental_dd.sources.connectors.database_log.last_commit import LastCommit
from dbt_incremental_dd.sources.connectors.database_log.spool import Spool
from dbt_incremental_dd.sources.connectors.database_log.table import LogTable, require_columns
from dbt_incremental_dd.sources.spec import SourceSpec

S = TypeVar("S", bound=SourceSpec)
T = TypeVar("T", bound=LogTable)

_ATTEMPTS = 5
"""How often tables may be altered while a point is sought."""


@dataclass(frozen=True)
class TableRequest(Generic[S]):
    """A source, what is known of it, and the types that it declares."""

    spec: S
    last: LastCommit
    declared: Schema | None


@dataclass(frozen=True)
class TableChanges:
    """What a table has for a run: all rows (``is_whole``), or changes since ``last``."""

    table: LogTable
    last: LastCommit
    spool: Spool
    is_whole: bool
    progress: Mapping[str, Any]


@dataclass(frozen=True)
class ConsistentPoint:
    """``changes``, ``errors`` and ``notes`` by the sources' names."""

    position: int
    changes: Mapping[str, TableChanges]
    errors: Mapping[str, DatabaseError]
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """What the log has of tables, by the sources' names: ``changes``, None of those that have to be copied again, or
    what is wrong; ``truncated``: those whose stored rows are all gone; ``last``: the end of the last transaction."""

    changes: Mapping[str, Spool | DatabaseError | None]
    truncated: frozenset[str] = frozenset()
    last: int = 0


class PointMaker(ABC, Generic[S, T]):
    """Finds the point for some sources. ``upto``: the point of a run that has one, which those that follow the log are
    to have, too."""

    def __init__(self, requests: Sequence[TableRequest[S]], upto: int | None) -> None:
        self._requests = {one.spec.name: one for one in requests}
        self._upto = upto
        self._errors: dict[str, DatabaseError] = {}
        self._notes: dict[str, str] = {}
        self._again: set[str] = set()
        """Sources that follow the log and have to be copied all the same."""

    def make(self) -> ConsistentPoint:
        """Until a point is found in which no table was altered. Raises DatabaseError where nothing can be read."""
        self._begin()
        self._publish(self._tables())
        for _ in range(_ATTEMPTS):
            found = self._attempt()
            if found is not None:
                return found
        raise DatabaseError("its tables are altered all the time", "Run again when they are not.")

    @abstractmethod
    def _begin(self) -> None:
        """Whether the log goes on from where the sources were left; what is wrong with one is its own error."""

    def _publish(self, tables: Mapping[str, T]) -> None:
        """Lets the log tell of the tables."""

    @abstractmethod
    def _described(self, request: TableRequest[S]) -> T:
        """The table as it is now. Raises DatabaseError where it cannot be followed."""

    @abstractmethod
    def _mark(self, table: T) -> list[Any]:
        """What stays the same as long as the log tells of every change. Raises DatabaseError."""

    @abstractmethod
    def _end(self) -> int:
        """Where the log ends."""

    @abstractmethod
    def _copied(self, names: Sequence[str], tables: Mapping[str, T], spools: dict[str, Spool]) -> int:
        """Copies tables into ``spools``, as of the position that is returned; what is wrong with one is its own
        error."""

    @abstractmethod
    def _followed(self, tables: Mapping[str, T], known: Mapping[str, LastCommit], position: int) -> Stream:
        """What the log has of tables up to ``position``."""

    def _settled(self, position: int, stream: Stream, known: Mapping[str, LastCommit]) -> int:
        """The position for tables that were not copied."""
        return position

    @abstractmethod
    def _progress(self, position: int, mark: list[Any]) -> dict[str, Any]:
        """What is stored of a table's progress."""

    def _tables(self) -> dict[str, T]:
        """The tables as they are now; what is wrong with one is its own error."""
        found = {}
        for name, one in self._requests.items():
            if name in self._errors:
                continue
            try:
                table = self._described(one)
                require_columns(table, one.last.stored)
                found[name] = table
            except DatabaseError as error:
                self._errors[name] = error
        return found

    def _marked(self, tables: Mapping[str, T]) -> dict[str, list[Any]]:
        found = {}
        for name, table in tables.items():
            try:
                found[name] = self._mark(table)
            except DatabaseError as error:
                self._errors[name] = error
        return found

    def _attempt(self) -> ConsistentPoint | None:
        """The point; None where a table was altered meanwhile, or turns out to need a copy."""
        tables = self._tables()
        marks = self._marked(tables)
        known = {name: self._requests[name].last for name in marks}
        fresh = [name for name in marks if name in self._again or known[name].progress.get("marks") != marks[name]]
        spools: dict[str, Spool] = {}
        try:
            position = self._copied(fresh, tables, spools) if fresh else self._upto or self._end()
            rest = {name: tables[name] for name in marks if name not in fresh}
            stream = self._followed(rest, known, position) if rest else Stream({})
            for name in rest:
                self._sort(name, stream.changes.get(name), spools)
            marks = {name: mark for name, mark in marks.items() if name not in self._errors}
            is_found = spools.keys() == marks.keys() and self._marked(self._tables()) == marks
        except BaseException:
            _remove(spools)
            raise
        if not is_found:
            _remove(spools)
            return None
        if not fresh and self._upto is None:
            position = self._settled(position, stream, known)
        whole = {*fresh, *stream.truncated}
        changes = {
            name: TableChanges(tables[name], known[name], spool, name in whole, self._progress(position, marks[name]))
            for name, spool in spools.items()
        }
        return ConsistentPoint(position, changes, self._errors, self._notes)

    def _sort(self, name: str, found: Spool | DatabaseError | None, spools: dict[str, Spool]) -> None:
        """Whether there are changes, something is wrong, or the table has to be copied again."""
        if isinstance(found, DatabaseError):
            self._errors[name] = found
        elif found is None:
            self._again.add(name)
        else:
            spools[name] = found


def _remove(spools: Mapping[str, Spool]) -> None:
    for spool in spools.values():
        spool.remove()
