"""Envelope ``replica``: the records are what happened to a table's rows, as the table's own database tells it.

With a key, a record is its key's row from now on, or takes it away. Without one, it is one row more, or one less. Where
the records are all that there is, the stored rows go that are not among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce as fold
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import INTEGER, Field, Struct
from dbt_incremental_dd.sources.envelopes import upsert_spark
from dbt_incremental_dd.sources.envelopes.envelope import POSITION, Change, Envelope, EnvelopeInput
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.exchange import Records
from dbt_incremental_dd.sources.poll_result import GONE, KEPT, WAS
from dbt_incremental_dd.trace.arrow import is_plain
from dbt_incremental_dd.trace.local import consolidate_local
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.read import consolidate, quoted, updates

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

_POSITION = Column(POSITION, Struct((Field("dd_none", INTEGER),)))
"""NULL throughout: the log itself is in order. It is stored so that a table may come to have a key, or lose it."""


class Replica(Envelope):
    """What happened to a table's rows."""

    name: ClassVar[str] = "replica"
    is_implied: ClassVar[bool] = True

    def sort_key(self, settings: EnvelopeSettings) -> tuple[str, ...]:
        return settings.key

    def apply(self, batch: EnvelopeInput) -> Change:
        is_first = batch.log is None or not batch.log.files
        if batch.settings.key and KEPT in batch.records.schema.names:
            batch = replace(batch, records=_completed(batch).localized())
        if batch.settings.key and (is_first or not batch.result.whole):
            return upsert_spark.change(batch)
        rows = _latest(batch) if batch.settings.key else _counted(batch)
        if is_first or not batch.result.whole:
            return Change(rows, False)
        assert batch.log is not None
        schema = Schema((*batch.schema, _POSITION, DIFF_COLUMN))
        stored = updates(batch.spark, batch.log.uri, batch.log.files, schema)
        gone = stored.withColumn(DIFF, -F.col(DIFF)).select(*map(quoted, schema.names))
        fresh = rows.frame.select(*map(quoted, schema.names))
        estimate = rows.estimate + total_rows(batch.log.files)
        return Change(batch.changed(consolidate(fresh.unionByName(gone)), estimate), False)


def _latest(batch: EnvelopeInput) -> Records:
    """Each key's last row, where it is not gone; nothing that is stored counts."""
    alone = replace(batch, log=None)
    return upsert_spark.change(alone).updates


def _counted(batch: EnvelopeInput) -> Records:
    """Rows that came with +1, those that went with -1, summed up."""
    records, names = batch.records.localized(), batch.schema.names
    local, has_gone = records.local, GONE in records.schema.names
    if local is not None and is_plain(batch.schema):
        ones = pa.chunked_array([pa.array([1] * local.num_rows, pa.int64())])
        diffs = pc.if_else(local[GONE], -1, ones) if has_gone else ones
        table = local.select(list(names)).append_column(DIFF, diffs.cast(pa.int64()))
        table = consolidate_local(table, (DIFF,))
        nowhere = pa.nulls(table.num_rows, pa.struct([("dd_none", pa.int32())]))
        table = table.add_column(len(names), POSITION, nowhere)
        return batch.driver_side(table, Schema((*batch.schema, _POSITION, DIFF_COLUMN)))
    diff = F.when(F.col(GONE), F.lit(-1)).otherwise(F.lit(1)) if has_gone else F.lit(1)
    frame = consolidate(records.frame.select(*map(quoted, names), diff.cast("bigint").alias(DIFF)))
    position = F.lit(None).cast("struct<dd_none:int>").alias(POSITION)
    return batch.changed(frame.select(*map(quoted, names), position, DIFF))


def _completed(batch: EnvelopeInput) -> Records:
    """The records with the values that they have from stored rows."""
    records, key = batch.records, batch.settings.key
    names = tuple(name for name in records.schema.names if name not in (KEPT, WAS))
    if batch.result.whole or not _has_kept(records):
        return records.select(names)
    frame, is_kept = records.frame, F.col(KEPT).isNotNull()
    was = {name: f"dd_was_{place}" for place, name in enumerate(key)}
    wanted = frame.where(is_kept).select(*(F.col(WAS)[name].alias(own) for name, own in was.items())).distinct()
    on = fold(lambda one, other: one & other, (F.col(WAS)[name] == F.col(own) for name, own in was.items()))
    joined = frame.join(_sought(batch, wanted, was), is_kept & on, "left")
    kept = [_kept(batch, place, name) for place, name in enumerate(batch.schema.names)]
    return batch.changed(joined.select(*kept, *map(quoted, names[len(kept) :])), records.estimate)


def _kept(batch: EnvelopeInput, place: int, name: str) -> Expression:
    """A column of the records, or the stored row's."""
    missing = F.raise_error(F.lit(f"a row of {batch.name} that the log goes on from is not stored"))
    old = F.when(F.col("dd_old").isNotNull(), F.col("dd_old")[name]).otherwise(missing)
    return F.when(F.array_contains(F.split(KEPT, ","), str(place)), old).otherwise(quoted(name)).alias(name)


def _sought(batch: EnvelopeInput, wanted: DataFrame, was: Mapping[str, str]) -> DataFrame:
    """The stored rows of the wanted keys: the key's columns, and ``dd_old``."""
    assert batch.log is not None
    schema = Schema((*batch.schema, DIFF_COLUMN))
    stored = updates(batch.spark, batch.log.uri, batch.log.files, schema)
    on = fold(lambda one, other: one & other, (quoted(name) == F.col(own) for name, own in was.items()))
    rows = consolidate(stored.join(wanted, on, "left_semi"))
    keys = (quoted(name).alias(own) for name, own in was.items())
    return rows.select(*keys, F.struct(*map(quoted, batch.schema.names)).alias("dd_old"))


def _has_kept(records: Records) -> bool:
    """Whether any record has a value from a stored row."""
    if records.local is not None:
        return bool(records.local[KEPT].null_count < records.local.num_rows)
    return not records.frame.where(F.col(KEPT).isNotNull()).isEmpty()


REPLICA: Envelope = Replica()
