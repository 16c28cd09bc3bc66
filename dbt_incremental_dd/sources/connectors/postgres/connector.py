"""Connector ``postgres``: a table's rows at first, then what the server's log tells of them.

A table's progress is a position in the log, committed with the updates. Nothing is consumed from the slot when it is
read; at a later run's beginning the slot is advanced to where the last of its followers is.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Hashable
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.sources.connectors.postgres import slots
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError, connect, parameters, told
from dbt_incremental_dd.sources.connectors.postgres.consistent_point import (
    ConsistentPoint,
    Feed,
    TableChanges,
    TableRequest,
    make,
)
from dbt_incremental_dd.sources.connectors.postgres.followers import LastCommit, last_commit
from dbt_incremental_dd.sources.connectors.postgres.spec import PostgresSpec
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import PollResult
from dbt_incremental_dd.sources.record_schema import declared
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.postgres.connection import Connection

_QUIET = 16 << 20
"""Bytes of log without changes of a table, after which its progress is stored all the same: the server keeps them."""
_INTERVAL = 0.2
_AGAIN = 5.0
"""Seconds until a server that could not be reached is tried again."""


SPEC = PostgresSpec


def poll_interval(spec: PostgresSpec) -> float:
    """Seconds between polls."""
    return _INTERVAL


def poll(request: PollRequest[PostgresSpec]) -> PollResult | None:
    """What has happened to the table since it was taken in last, up to the run's position in the log."""
    try:
        feed = _feed(request.storage, request.spec)
        found = _consistent_point(request, feed)
        if isinstance(found, PostgresError):
            raise found
        return _result(request, feed, found)
    except PostgresError as error:
        raise SourceError(f"source {request.spec.name}: {error.message}", error.remedy) from None


def _feed(storage: Storage, spec: PostgresSpec) -> Feed:
    url = spec.options["url"]
    database = parameters(url).get("dbname", "")
    root = storage.root if "://" in storage.root else os.path.abspath(storage.root)
    own = f"dd_{hashlib.sha256(f'{root} {database}'.encode()).hexdigest()[:12]}"
    return Feed(storage, url, spec.options.get("slot", own), spec.options.get("publication", own))


def _identity(feed: Feed) -> Hashable:
    """What a run's sources have in common; the url, which has a password, as its hash."""
    return "postgres", hashlib.sha256(feed.url.encode()).hexdigest(), feed.slot, feed.publication


def _consistent_point(request: PollRequest[PostgresSpec], feed: Feed) -> ConsistentPoint | PostgresError:
    """The run's point, made by the first of its sources; a failure is everybody's, and is not tried again."""

    def made() -> ConsistentPoint | PostgresError:
        try:
            return make(feed, [_table_request(request, spec) for spec in _fellows(request, feed)])
        except PostgresError as error:
            return error

    return request.scope.of(_identity(feed), made)


def _fellows(request: PollRequest[PostgresSpec], feed: Feed) -> list[PostgresSpec]:
    """The run's sources from the same log, the polled one among them."""
    others = [
        spec for spec in request.scope.sources if isinstance(spec, PostgresSpec) and spec.name != request.spec.name
    ]
    return [request.spec, *(spec for spec in others if _identity(_feed(request.storage, spec)) == _identity(feed))]


def _table_request(request: PollRequest[PostgresSpec], spec: PostgresSpec) -> TableRequest:
    own = LastCommit(request.progress, request.stored)
    columns = declared(request.workspace.session, spec)
    types = None if columns is None else schema_of(columns)
    return TableRequest(spec, own if spec.name == request.spec.name else last_commit(request.storage, spec.name), types)


def _result(request: PollRequest[PostgresSpec], feed: Feed, point: ConsistentPoint) -> PollResult | None:
    name, position = request.spec.name, int(request.progress.get("lsn", 0))
    notes: tuple[str, ...] = ()
    found = point.changes.get(name)
    if name in point.errors:
        raise point.errors[name]
    if position >= point.position:
        return None  # another process has taken in as much, or more
    if found is None or found.last.progress != request.progress:
        # Nobody said that the run reads it, or another process was here meanwhile.
        alone = make(feed, [_table_request(request, request.spec)], point.position)
        if name in alone.errors:
            raise alone.errors[name]
        found = alone.changes[name]
        if alone.position != point.position:
            notes = (f"as of {slots.lsn_text(alone.position)}, later than what the run has of other tables",)
    return _as_result(request, found, notes)


def _as_result(request: PollRequest[PostgresSpec], found: TableChanges, notes: tuple[str, ...]) -> PollResult | None:
    quiet = int(found.progress["lsn"]) - found.last.position < _QUIET
    if not found.spool.rows and not found.is_whole and quiet:
        return None
    records = found.spool.records(request.workspace)
    folder = found.spool.folder
    return PollResult(
        records,
        found.progress,
        whole=found.is_whole,
        key=found.table.key,
        scratch=(folder,) if folder else (),
        notes=notes,
    )


class _LogEnds:
    """A connection to each server that is looked at, kept open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, Connection] = {}
        self._failed: dict[str, float] = {}

    def at(self, url: str) -> int:
        """Where the server's log ends. Raises OSError where it cannot be reached."""
        with self._lock:
            if time.monotonic() - self._failed.get(url, -_AGAIN) < _AGAIN:
                raise ConnectionError("the server could not be reached just now")
            try:
                with told(url):
                    if url not in self._open:
                        self._open[url] = connect(url)
                    return slots.flushed(self._open[url])
            except PostgresError as error:
                self._failed[url] = time.monotonic()
                connection = self._open.pop(url, None)
                if connection is not None:
                    connection.close()
                raise ConnectionError(error.message) from None


_LOG_ENDS = _LogEnds()


def change_token(storage: Storage, spec: PostgresSpec) -> Hashable:
    """Where the server's log ends. Raises OSError where it cannot be reached."""
    return _LOG_ENDS.at(spec.options["url"])
