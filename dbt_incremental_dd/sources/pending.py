"""Records that come before their time. Those of a source with ``event_time`` that are not before the time it is taken
in at wait in a trace of their own, until its frontier passes them.

So a run for a past day takes in what that day had, however much more there is already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.foreign import reason
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.sources.exchange import Records, write
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.layout import Place
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.read import updates

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

NODE = "waiting"
"""The trace's name."""
_EVENT = "dd_event"
"""BIGINT, ms: the record's event time."""
_DAY = 86_400_000


@dataclass(frozen=True)
class Split:
    """Records that are due, and the files that wait in place of ``read``, which held what was waiting so far."""

    due: Records
    pending: tuple[DataFile, ...] = ()
    read: tuple[DataFile, ...] = ()


class Pending:
    """What waits as of the source's last commit; ``version``: of its trace then, None where there was none.

    A record is due at ``t`` if its event time is before ``t``, or NULL.
    """

    def __init__(self, spark: SparkSession, place: Place, spec: SourceSpec, t: Time, version: int | None) -> None:
        self._spark = spark
        self._place = place.inner(NODE)
        self._spec = spec
        self._t = t
        self._log: Log | None = None if version is None else self._place.log_at(version)

    @property
    def is_due(self) -> bool:
        """Whether any of what waits is."""
        return bool(self._due_files())

    def no_records(self) -> Records:
        """None, with the columns of those that wait: where only what waits is taken in."""
        assert self._log is not None
        added = (_EVENT, TIME, DIFF)
        schema = Schema(tuple(column for column in self._log.schema if column.name not in added))
        return Records(self._spark, updates(self._spark, "", (), schema))

    def split(self, records: Records) -> Split:
        """The due ones among new records and those that wait; what is not due is written. Raises ConfigError where
        ``event_time`` is no time."""
        names = records.schema.names
        read = self._due_files()
        if self._spec.event_time is None and not read:
            return Split(records)
        frame, estimate = self._with_event(records.frame), records.estimate + total_rows(read)
        stored = _stored(records.schema)
        if read:
            assert self._log is not None
            waited = updates(self._spark, self._log.uri, read, stored)
            once_each = F.explode(F.array_repeat(F.lit(0), F.col(DIFF).cast("int")))
            frame = frame.unionByName(waited.withColumn(DIFF, once_each).drop(TIME, DIFF))
        both = Records(self._spark, frame, estimate).localized()
        if self._spec.event_time is None:
            return Split(both.select(names), read=read)
        due, early = self._parted(both)
        place, rest = self._place, early.counted(1).localized()
        pending = write(place.storage, place.trace_uri, rest, stored, self._t, [_EVENT], [_EVENT])
        return Split(due.select(names), pending, read)

    def _parted(self, records: Records) -> tuple[Records, Records]:
        """Those that are due, and those that are not."""
        if records.local is None:
            early = F.coalesce(F.col(_EVENT) >= F.lit(self._t), F.lit(False))
            return records.where(~early), records.where(early)
        mask = pc.fill_null(pc.greater_equal(records.local[_EVENT], self._t), False)
        return records.replaced(records.local.filter(pc.invert(mask))), records.replaced(records.local.filter(mask))

    def commit(self, split: Split, schema: Schema) -> dict[str, int]:
        """Puts what waits in place of what was read; its trace's version, for the source's commit to name."""
        if not split.pending and not split.read:
            return {NODE: self._log.version} if self._log else {}
        stored = _stored(schema)
        kept = tuple(file for file in (self._log.files if self._log else ()) if file not in split.read)
        return {NODE: self._place.create(stored).holding((*kept, *split.pending), stored).version}

    def _due_files(self) -> tuple[DataFile, ...]:
        files = self._log.files if self._log else ()
        if self._spec.event_time is None:
            return files
        return tuple(file for file in files if _EVENT not in file.bounds or file.bounds[_EVENT][0] < self._t)

    def _with_event(self, frame: DataFrame) -> DataFrame:
        if self._spec.event_time is None:
            return frame.withColumn(_EVENT, F.lit(None).cast("bigint"))
        return frame.withColumn(_EVENT, self._milliseconds(frame, self._spec.event_time))

    def _milliseconds(self, frame: DataFrame, text: str) -> Expression:
        """The event time in ms; a date is its first moment, and what names no zone is UTC."""
        try:
            found = frame.select(F.expr(text).alias(_EVENT)).schema[0].dataType.typeName()
        except PySparkException as error:
            raise ConfigError(
                f"source {self._spec.name}: event_time is {text!r}, which Spark refuses: {reason(error)}",
                "Name a column of it, or write an expression over its columns.",
            ) from error
        value = F.expr(text)
        if found == "date":
            return F.unix_date(value).cast("bigint") * _DAY
        if found == "timestamp":
            return F.unix_millis(value)
        if found == "timestamp_ntz":
            minutes = F.hour(value) * 60 + F.minute(value)
            of_day = minutes * 60_000 + (F.date_part(F.lit("SECOND"), value) * 1000).cast("bigint")
            return F.unix_date(value.cast("date")).cast("bigint") * _DAY + of_day
        if found in ("long", "integer"):
            return value.cast("bigint")
        raise ConfigError(
            f"source {self._spec.name}: event_time is {text!r}, of type {found}",
            "It must be a DATE, a TIMESTAMP, or a BIGINT of ms since 1970. Declare the column so, or cast it.",
        )


def _stored(schema: Schema) -> Schema:
    return Schema((*schema.columns, Column(_EVENT, LONG), TIME_COLUMN, DIFF_COLUMN))
