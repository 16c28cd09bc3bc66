"""How a source of a database's log is polled: the first of a run's sources finds the point for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.sources.connectors.database_log.consistent_point import (
    ConsistentPoint,
    TableChanges,
    TableRequest,
)
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError
from dbt_incremental_dd.sources.connectors.database_log.last_commit import POSITION, LastCommit, last_commit
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.record_schema import declared
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import schema_of

S = TypeVar("S", bound=SourceSpec)

_AGAIN = 5.0
"""Seconds until a server that could not be reached is tried again."""


class DatabaseLog(Protocol[S]):
    """What is special to a connector."""

    kind: type[S]

    def identity(self, storage: Storage, spec: S) -> Hashable:
        """Equal for sources of one log; without secrets. Raises DatabaseError."""

    def make(self, storage: Storage, spec: S, requests: Sequence[TableRequest[S]], upto: int | None) -> ConsistentPoint:
        """The point for the sources, as ``PointMaker`` has it. Raises DatabaseError where nothing can be read."""

    def position_text(self, position: int) -> str:
        """The position as the server writes it."""

    def is_far(self, since: int, position: int) -> bool:
        """Whether progress is stored though the table has no changes: the server keeps or removes its log by it."""


@dataclass(frozen=True)
class _Poll(Generic[S]):
    log: DatabaseLog[S]
    request: PollRequest[S]

    def result(self) -> PollResult | None:
        """What is new of the source, up to the run's position. Raises DatabaseError."""
        request, name = self.request, self.request.spec.name
        point = self._point()
        if isinstance(point, DatabaseError):
            raise point
        if name in point.errors:
            raise point.errors[name]
        if int(request.progress.get(POSITION, 0)) >= point.position:
            return None  # another process has taken in as much, or more
        notes = [point.notes[name]] if name in point.notes else []
        found = point.changes.get(name)
        if found is None or found.last.progress != request.progress:
            # Nobody said that the run reads it, or another process was here meanwhile.
            alone = self._made([request.spec], point.position)
            if name in alone.errors:
                raise alone.errors[name]
            found = alone.changes[name]
            notes = [alone.notes[name]] if name in alone.notes else []
            if alone.position != point.position:
                where = self.log.position_text(alone.position)
                notes.append(f"as of {where}, later than what the run has of other tables")
        return self._of(found, tuple(notes))

    def _point(self) -> ConsistentPoint | DatabaseError:
        """The run's point, made by the first of its sources; a failure is everybody's, and is not tried again."""

        def made() -> ConsistentPoint | DatabaseError:
            try:
                return self._made(self._fellows(), None)
            except DatabaseError as error:
                return error

        return self.request.scope.of(self._identity(self.request.spec), made)

    def _identity(self, spec: S) -> Hashable:
        return self.log.identity(self.request.storage, spec)

    def _fellows(self) -> list[S]:
        """The run's sources from the same log, the polled one among them."""
        own, others = self.request.spec, self.request.scope.sources
        found = [spec for spec in others if isinstance(spec, self.log.kind) and spec.name != own.name]
        return [own, *(spec for spec in found if self._identity(spec) == self._identity(own))]

    def _made(self, specs: Sequence[S], upto: int | None) -> ConsistentPoint:
        requests = [self._table_request(spec) for spec in specs]
        return self.log.make(self.request.storage, self.request.spec, requests, upto)

    def _table_request(self, spec: S) -> TableRequest[S]:
        request = self.request
        own = LastCommit(request.progress, request.stored)
        columns = declared(request.workspace.session, spec)
        types = None if columns is None else schema_of(columns)
        last = own if spec.name == request.spec.name else last_commit(request.storage, spec.name)
        return TableRequest(spec, last, types)

    def _of(self, found: TableChanges, notes: tuple[str, ...]) -> PollResult | None:
        is_far = self.log.is_far(found.last.position, int(found.progress[POSITION]))
        if not found.spool.rows and not found.is_whole and not is_far:
            return None
        records = found.spool.records(self.request.workspace)
        folder = found.spool.folder
        return PollResult(
            records,
            found.progress,
            whole=found.is_whole,
            key=found.table.key,
            scratch=(folder,) if folder else (),
            notes=notes,
        )


def poll(log: DatabaseLog[S], request: PollRequest[S]) -> PollResult | None:
    """What has happened to the table since it was taken in last, up to the run's position in the log. Raises
    SourceError, naming the source."""
    try:
        return _Poll(log, request).result()
    except DatabaseError as error:
        raise SourceError(f"source {request.spec.name}: {error.message}", error.remedy) from None


class LogEnds:
    """A connection to each server that is looked at, kept open. ``end``: where its log ends; raises DatabaseError."""

    def __init__(self, connect: Callable[[Any], Any], end: Callable[[Any, Any], Hashable]) -> None:
        self._connect = connect
        self._end = end
        self._lock = threading.Lock()
        self._open: dict[Hashable, Any] = {}
        self._failed: dict[Hashable, float] = {}

    def at(self, server: Hashable) -> Hashable:
        """Where the server's log ends. Raises OSError where it cannot be reached."""
        with self._lock:
            if time.monotonic() - self._failed.get(server, -_AGAIN) < _AGAIN:
                raise ConnectionError("the server could not be reached just now")
            try:
                if server not in self._open:
                    self._open[server] = self._connect(server)
                return self._end(server, self._open[server])
            except DatabaseError as error:
                self._failed[server] = time.monotonic()
                connection = self._open.pop(server, None)
                if connection is not None:
                    connection.close()
                raise ConnectionError(error.message) from None
