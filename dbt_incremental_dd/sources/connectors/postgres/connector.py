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

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.connectors.postgres import slots
from dbt_incremental_dd.sources.connectors.postgres.connection import Trouble, connect, parameters, told
from dbt_incremental_dd.sources.connectors.postgres.consistent_point import Asked, Feed, Moment, Taken, make
from dbt_incremental_dd.sources.connectors.postgres.followers import Known, known
from dbt_incremental_dd.sources.poll import Visit
from dbt_incremental_dd.sources.poll_result import Arrival
from dbt_incremental_dd.sources.record_schema import declared
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.read import schema_of

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.connectors.postgres.connection import Connection

_OPTIONS = ("url", "slot", "publication")
_MEANINGLESS = ("key", "order_by", "deleted_when", "path", "format", "event_time", "diff_column", "op_column")
_QUIET = 16 << 20
"""Bytes of log without changes of a table, after which its progress is stored all the same: the server keeps them."""
_LOOK = 0.2
_AGAIN = 5.0
"""Seconds until a server that could not be reached is tried again."""


def check(spec: SourceSpec) -> None:
    """Raises ConfigError for settings that say what the server says itself, and for wrong options."""
    for name in _MEANINGLESS:
        if getattr(spec, name):
            raise ConfigError(
                f"source {spec.name}: {name} means nothing to connector postgres", "Leave it out: the table says it."
            )
    unknown = [name for name in spec.options if name not in _OPTIONS]
    if unknown or not spec.options.get("url"):
        raise ConfigError(
            f"source {spec.name}: {f'unknown option {unknown[0]}' if unknown else 'connector postgres needs a url'}",
            f"Under options there may be {', '.join(_OPTIONS)}; url: {{env_var: POSTGRES_URL}}.",
        )
    slot = spec.options.get("slot", "")
    if slot and (len(slot) > 63 or not all(char.isdigit() or char in "_abcdefghijklmnopqrstuvwxyz" for char in slot)):
        raise ConfigError(
            f"source {spec.name}: options.slot is {slot!r}", "It may have lower case letters, digits and underscores."
        )


def look_every(spec: SourceSpec) -> float:
    """Seconds between looks."""
    return _LOOK


def arrivals(visit: Visit) -> Arrival | None:
    """What has happened to the table since it was taken in last, up to the run's position in the log."""
    try:
        feed = _feed(visit.storage, visit.spec)
        found = _moment(visit, feed)
        if isinstance(found, Trouble):
            raise found
        return _arrival(visit, feed, found)
    except Trouble as error:
        raise SourceError(f"source {visit.spec.name}: {error.message}", error.remedy) from None


def _feed(storage: Storage, spec: SourceSpec) -> Feed:
    url = spec.options["url"]
    database = parameters(url).get("dbname", "")
    root = storage.root if "://" in storage.root else os.path.abspath(storage.root)
    own = f"dd_{hashlib.sha256(f'{root} {database}'.encode()).hexdigest()[:12]}"
    return Feed(storage, url, spec.options.get("slot", own), spec.options.get("publication", own))


def _identity(feed: Feed) -> Hashable:
    """What a run's sources have in common; the url, which has a password, as its hash."""
    return "postgres", hashlib.sha256(feed.url.encode()).hexdigest(), feed.slot, feed.publication


def _moment(visit: Visit, feed: Feed) -> Moment | Trouble:
    """The run's moment, made by the first of its sources; a failure is everybody's, and is not tried again."""

    def made() -> Moment | Trouble:
        try:
            return make(feed, [_asked(visit, spec) for spec in _fellows(visit, feed)])
        except Trouble as error:
            return error

    return visit.moments.of(_identity(feed), made)


def _fellows(visit: Visit, feed: Feed) -> list[SourceSpec]:
    """The run's sources from the same log, the visited one among them."""
    others = [spec for spec in visit.moments.sources if spec.connector == "postgres" and spec.name != visit.spec.name]
    return [visit.spec, *(spec for spec in others if _identity(_feed(visit.storage, spec)) == _identity(feed))]


def _asked(visit: Visit, spec: SourceSpec) -> Asked:
    own = Known(visit.progress, visit.stored)
    columns = declared(visit.spark, spec)
    types = None if columns is None else schema_of(columns)
    return Asked(spec, own if spec.name == visit.spec.name else known(visit.storage, spec.name), types)


def _arrival(visit: Visit, feed: Feed, moment: Moment) -> Arrival | None:
    name, position = visit.spec.name, int(visit.progress.get("lsn", 0))
    notes: tuple[str, ...] = ()
    found = moment.taken.get(name)
    if name in moment.troubles:
        raise moment.troubles[name]
    if position >= moment.position:
        return None  # another process has taken in as much, or more
    if found is None or found.known.progress != visit.progress:
        # Nobody said that the run reads it, or another process was here meanwhile.
        alone = make(feed, [_asked(visit, visit.spec)], moment.position)
        if name in alone.troubles:
            raise alone.troubles[name]
        found = alone.taken[name]
        if alone.position != moment.position:
            notes = (f"as of {slots.lsn_text(alone.position)}, later than what the run has of other tables",)
    return _as_arrival(visit, found, notes)


def _as_arrival(visit: Visit, found: Taken, notes: tuple[str, ...]) -> Arrival | None:
    quiet = int(found.progress["lsn"]) - found.known.position < _QUIET
    if not found.spool.rows and not found.is_whole and quiet:
        return None
    records = found.spool.records(visit.spark)
    folder = found.spool.folder
    return Arrival(
        records,
        found.progress,
        whole=found.is_whole,
        key=found.table.key,
        scratch=(folder,) if folder else (),
        notes=notes,
    )


class _Looking:
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
            except Trouble as error:
                self._failed[url] = time.monotonic()
                connection = self._open.pop(url, None)
                if connection is not None:
                    connection.close()
                raise ConnectionError(error.message) from None


_LOOKING = _Looking()


def sight(storage: Storage, spec: SourceSpec) -> Hashable:
    """Where the server's log ends. Raises OSError where it cannot be reached."""
    return _LOOKING.at(spec.options["url"])
