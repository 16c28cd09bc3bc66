"""What a source forgets: rows whose event time is longer ago than ``keep``.

They leave at an intake, as deletions, so that models forget them as they follow any change. The threshold is rounded
down to a thirtieth of ``keep``. So rows leave in at most 30 intakes of that time, each of which reads those files that
may have rows between the former threshold and the new one. What comes too late is not taken in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow.compute as pc

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.core.types import DATE, INTEGER, LONG, TIMESTAMP, TIMESTAMP_NTZ, Type
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.records import localized
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.arrow import is_readable
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.range_reader import overlapping, read_range
from dbt_incremental_dd.trace.spark_reader import quote_name, updates

_PARTS = 30
"""Steps of the threshold in the time for which rows are kept."""
_EPOCH = datetime(1970, 1, 1)
_FIRST: Time = -62_135_596_800_000
"""The beginning of the year 1."""
_DAY = 86_400_000


def _date(t: Time) -> date:
    """The first date that does not begin before ``t``."""
    return (_EPOCH + timedelta(days=-(-t // _DAY))).date()


def _moment(t: Time) -> datetime:
    return _EPOCH + timedelta(milliseconds=t)


_VALUES: Mapping[Type, tuple[Callable[[Time], Any], Callable[[Time], str]]] = {
    DATE: (_date, lambda t: f"date_from_unix_date({-(-t // _DAY)})"),
    TIMESTAMP: (lambda t: _moment(t).replace(tzinfo=UTC), lambda t: f"timestamp_millis({t}L)"),
    TIMESTAMP_NTZ: (_moment, lambda t: f"TIMESTAMP_NTZ'{_moment(t).isoformat(' ', 'milliseconds')}'"),
    LONG: (lambda t: t, lambda t: f"{t}L"),
    INTEGER: (lambda t: max(t, -(2**31)), lambda t: f"{t}L"),
}
"""A threshold as a value of the column's type, and in Spark's SQL, whatever the session's time zone is: a date is its
first moment, and what names no zone is UTC. A value of the column is before it if and only if its event is."""


class Keep:
    """What one intake at ``t`` forgets. ``before``: the threshold of the last commit, None if there was none; ``log``:
    what is stored, None if nothing is."""

    def __init__(self, workspace: Workspace, spec: SourceSpec, t: Time, before: Time | None, log: Log | None) -> None:
        self._workspace = workspace
        self._spec = spec
        self._before = before
        self._log = log
        self.since = None if spec.keep is None else _threshold(t, spec.keep)
        """The event time (ms) from which on rows are kept; None if all are."""

    @property
    def is_due(self) -> bool:
        """Whether stored rows may have to leave."""
        return self.since is not None and self._log is not None and (self._before is None or self._before < self.since)

    def sort_key(self, schema: Schema) -> tuple[str, ...]:
        """What the collection is sorted by, so that rows of the same time are side by side."""
        return () if self._spec.keep is None else (self._column(schema).name,)

    def in_time(self, records: Relation, schema: Schema) -> tuple[Relation, str]:
        """The records that come in time, and a note on the others. Raises ConfigError if ``event_time`` is no column of
        the visible ones, or none of a time."""
        if self.since is None:
            return records, ""
        column = self._column(schema)
        name, threshold = quote_name(column.name), _VALUES[column.type][1](self.since)
        records = localized(records)
        late = records.filter(Expr(f"{name} < {threshold}")).count()
        if not late:
            return records, ""
        in_time = records.filter(Expr(f"{name} IS NULL OR {name} >= {threshold}"))
        return in_time, f"{late:,} record(s) came too late to be kept, and are not taken in"

    def gone(self, schema: Schema) -> Relation | None:
        """The stored rows that leave, with the visible columns and how often each is there; None if none can."""
        if not self.is_due or self._log is None or self.since is None:
            return None
        column = self._column(schema)
        value, text = _VALUES[column.type]
        low, high = None if self._before is None else value(self._before), value(self.since)
        files = overlapping(self._log.files, column.name, low, high)
        if not files:
            return None
        columns = Schema((*schema, DIFF_COLUMN))
        most, uri, storage = self._workspace.thresholds.found_rows, self._log.uri, self._workspace.storage
        if is_readable(columns) and most:
            table = read_range(storage, uri, files, columns, column.name, low, high, most)
            if table is not None:
                found = Relation.of(self._workspace, table, columns)
                has_only_rows = not table.num_rows or pc.min(table[DIFF]).as_py() > 0
                return found if has_only_rows else found.consolidate()
        name = quote_name(column.name)
        lower = "" if self._before is None else f" AND {name} >= {text(self._before)}"
        frame = updates(self._workspace.spark, uri, files, columns).where(f"{name} < {text(self.since)}{lower}")
        return Relation(self._workspace, frame, total_rows(files)).consolidate()

    def _column(self, schema: Schema) -> Column:
        """The column of event times. Raises ConfigError."""
        found = schema.find(str(self._spec.event_time))
        if found is None:
            raise ConfigError(
                f"source {self._spec.name}: with keep, event_time must be a column, and {self._spec.event_time!r} is "
                f"none of {', '.join(schema.names)}",
                "Name a column of the source.",
            )
        if found.type not in _VALUES:
            raise ConfigError(
                f"source {self._spec.name}: event_time {found.name} is of type {found.type}",
                "It must be a DATE, a TIMESTAMP, or a BIGINT of ms since 1970. Declare the column so.",
            )
        return found


def _threshold(t: Time, keep: int) -> Time | None:
    """None if it is before all times that there are."""
    step = max(keep // _PARTS, 1)
    found = (t - keep) // step * step
    return found if found > _FIRST else None
