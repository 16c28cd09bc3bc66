"""Records that come before their time. Those of a source with ``event_time`` that are not before the time it is taken
in at wait in a trace of their own, until its frontier passes them.

So a run for a past day takes in what that day had, however much more there is already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.foreign import reason
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.core.types import DATE, INTEGER, LONG, TIMESTAMP, TIMESTAMP_NTZ, Type
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.relation.stored import read, write
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.records import localized, no_records
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log

NODE = "waiting"
"""The trace's name."""
_EVENT = "dd_event"
"""BIGINT, ms: the record's event time."""
_VALUE = "dd_event_value"
_DAY = "86400000L"
_MILLISECONDS: Mapping[Type, str] = {
    DATE: f"CAST(unix_date({_VALUE}) AS BIGINT) * {_DAY}",
    TIMESTAMP: f"unix_millis({_VALUE})",
    TIMESTAMP_NTZ: f"CAST(unix_date(CAST({_VALUE} AS DATE)) AS BIGINT) * {_DAY} "
    f"+ (hour({_VALUE}) * 60 + minute({_VALUE})) * 60000 "
    f"+ CAST(date_part('SECOND', {_VALUE}) * 1000 AS BIGINT)",
    LONG: _VALUE,
    INTEGER: f"CAST({_VALUE} AS BIGINT)",
}
"""An event time in ms, by its type; a date is its first moment, and what names no zone is UTC."""


@dataclass(frozen=True)
class Split:
    """Records that are due, and the files that wait in place of ``read``, which held what was waiting so far."""

    due: Relation
    pending: tuple[DataFile, ...] = ()
    read: tuple[DataFile, ...] = ()


class Pending:
    """What waits as of the source's last commit; ``version``: of its trace then, None where there was none.

    A record is due at ``t`` if its event time is before ``t``, or NULL.
    """

    def __init__(
        self, workspace: Workspace, place: CollectionStore, spec: SourceSpec, t: Time, version: int | None
    ) -> None:
        self._workspace = workspace
        self._place = place.inner(NODE)
        self._spec = spec
        self._t = t
        self._log: Log | None = None if version is None else self._place.log_at(version)

    @property
    def is_due(self) -> bool:
        """Whether any of what waits is."""
        return bool(self._due_files())

    def no_records(self) -> Relation:
        """None, with the columns of those that wait: where only what waits is taken in."""
        assert self._log is not None
        columns = tuple(c for c in self._log.schema if c.name not in (_EVENT, TIME, DIFF))
        return no_records(self._workspace, Schema(columns))

    def split(self, records: Relation) -> Split:
        """The due ones among new records and those that wait; what is not due is written. Raises ConfigError where
        ``event_time`` is no time."""
        names, waiting = [name for name in records.names if name != DIFF], self._due_files()
        if self._spec.event_time is None and not waiting:
            return Split(records)
        both = records if self._spec.event_time is None else self._with_event(records)
        if waiting:
            assert self._log is not None
            columns = both.schema.columns
            most = self._workspace.thresholds.taken_rows
            waited = read(self._workspace, self._log.uri, waiting, Schema(columns), most=most)
            # Equal records are stored as one.
            found = plus([both, replace(waited, positive=True).expand()])
            assert found is not None
            both = found
        both = localized(both)
        if self._spec.event_time is None:
            return Split(both, read=waiting)
        early = localized(both.filter(Expr(f"{_EVENT} >= {self._t}L")))
        due = both.filter(Expr(f"{_EVENT} IS NULL OR {_EVENT} < {self._t}L")).columns(names)
        uri, stored = self._place.trace_uri, _stored(records.schema)
        return Split(due, write(early, uri, stored, self._t, bounded=[_EVENT], sort_by=[_EVENT]), waiting)

    def commit(self, split: Split, schema: Schema) -> dict[str, int]:
        """Puts what waits in place of what was read; its trace's version, for the source's commit to name."""
        if not split.pending and not split.read:
            return {NODE: self._log.version} if self._log else {}
        stored = _stored(schema)
        kept = tuple(file for file in (self._log.files if self._log else ()) if file not in split.read)
        log = self._place.create_anew(stored) if self._log is None else self._place.create(stored)
        return {NODE: log.holding((*kept, *split.pending), stored).version}

    def _due_files(self) -> tuple[DataFile, ...]:
        files = self._log.files if self._log else ()
        if self._spec.event_time is None:
            return files
        return tuple(file for file in files if _EVENT not in file.bounds or file.bounds[_EVENT][0] < self._t)

    def _with_event(self, records: Relation) -> Relation:
        """The records with their event time in ms."""
        text = str(self._spec.event_time)
        try:
            found = records.extend([(_VALUE, Expr(text))])
            dtype = found.schema.select((_VALUE,)).columns[0].type
        except PySparkException as error:
            raise ConfigError(
                f"source {self._spec.name}: event_time is {text!r}, which Spark refuses: {reason(error)}",
                "Name a column of it, or write an expression over its columns.",
            ) from error
        if dtype not in _MILLISECONDS:
            raise ConfigError(
                f"source {self._spec.name}: event_time is {text!r}, of type {dtype}",
                "It must be a DATE, a TIMESTAMP, or a BIGINT of ms since 1970. Declare the column so, or cast it.",
            )
        names = [name for name in records.names if name != DIFF]
        return found.extend([(_EVENT, Expr(_MILLISECONDS[dtype]))]).columns([*names, _EVENT])


def _stored(schema: Schema) -> Schema:
    """``schema``: of records."""
    columns = (column for column in schema if column.name != DIFF)
    return Schema((*columns, Column(_EVENT, LONG), TIME_COLUMN, DIFF_COLUMN))
