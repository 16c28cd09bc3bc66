"""Envelope ``replica``: the records are what happened to a table's rows, as the table's own database tells it.

With a key, a record is its key's row from now on, or takes it away. Without one, it is one row more, or one less. Where
the records are all that there is, the stored rows go that are not among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce as fold
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.sources.envelopes import upsert_spark as upsert
from dbt_incremental_dd.sources.envelopes.envelope import POSITION, Change, Taking
from dbt_incremental_dd.sources.exchange import Records
from dbt_incremental_dd.sources.poll_result import GONE, KEPT, WAS
from dbt_incremental_dd.trace.arrow import is_plain
from dbt_incremental_dd.trace.local import consolidate_local
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.read import consolidate, quoted, updates

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

_NOWHERE = '{"fields":[{"metadata":{},"name":"dd_none","nullable":true,"type":"integer"}],"type":"struct"}'
_POSITION = Column(POSITION, _NOWHERE)
"""NULL throughout: the log itself is in order. It is stored so that a table may come to have a key, or lose it."""


def change(taking: Taking) -> Change:
    """The updates of the stored rows."""
    is_first = taking.log is None or not taking.log.files
    if taking.spec.key and KEPT in taking.records.schema.names:
        taking = replace(taking, records=_completed(taking).localized())
    if taking.spec.key and (is_first or not taking.arrival.whole):
        return upsert.change(taking)
    rows = _latest(taking) if taking.spec.key else _counted(taking)
    if is_first or not taking.arrival.whole:
        return Change(rows, False)
    assert taking.log is not None
    schema = Schema((*taking.schema, _POSITION, DIFF_COLUMN))
    stored = updates(taking.spark, taking.log.uri, taking.log.files, schema)
    gone = stored.withColumn(DIFF, -F.col(DIFF)).select(*map(quoted, schema.names))
    fresh = rows.frame.select(*map(quoted, schema.names))
    estimate = rows.estimate + total_rows(taking.log.files)
    return Change(taking.changed(consolidate(fresh.unionByName(gone)), estimate), False)


def _latest(taking: Taking) -> Records:
    """Each key's last row, where it is not gone; nothing that is stored counts."""
    alone = replace(taking, log=None)
    return upsert.change(alone).updates


def _counted(taking: Taking) -> Records:
    """Rows that came with +1, those that went with -1, summed up."""
    records, names = taking.records.localized(), taking.schema.names
    local, has_gone = records.local, GONE in records.schema.names
    if local is not None and is_plain(taking.schema):
        ones = pa.chunked_array([pa.array([1] * local.num_rows, pa.int64())])
        diffs = pc.if_else(local[GONE], -1, ones) if has_gone else ones
        table = local.select(list(names)).append_column(DIFF, diffs.cast(pa.int64()))
        table = consolidate_local(table, (DIFF,))
        nowhere = pa.nulls(table.num_rows, pa.struct([("dd_none", pa.int32())]))
        table = table.add_column(len(names), POSITION, nowhere)
        return taking.driver_side(table, Schema((*taking.schema, _POSITION, DIFF_COLUMN)))
    diff = F.when(F.col(GONE), F.lit(-1)).otherwise(F.lit(1)) if has_gone else F.lit(1)
    frame = consolidate(records.frame.select(*map(quoted, names), diff.cast("bigint").alias(DIFF)))
    position = F.lit(None).cast("struct<dd_none:int>").alias(POSITION)
    return taking.changed(frame.select(*map(quoted, names), position, DIFF))


def _completed(taking: Taking) -> Records:
    """The records with the values that they have from stored rows."""
    records, key = taking.records, taking.spec.key
    names = tuple(name for name in records.schema.names if name not in (KEPT, WAS))
    if taking.arrival.whole or not _has_kept(records):
        return records.select(names)
    frame, is_kept = records.frame, F.col(KEPT).isNotNull()
    was = {name: f"dd_was_{place}" for place, name in enumerate(key)}
    wanted = frame.where(is_kept).select(*(F.col(WAS)[name].alias(own) for name, own in was.items())).distinct()
    on = fold(lambda one, other: one & other, (F.col(WAS)[name] == F.col(own) for name, own in was.items()))
    joined = frame.join(_sought(taking, wanted, was), is_kept & on, "left")
    kept = [_kept(taking, place, name) for place, name in enumerate(taking.schema.names)]
    return taking.changed(joined.select(*kept, *map(quoted, names[len(kept) :])), records.estimate)


def _kept(taking: Taking, place: int, name: str) -> Expression:
    """A column of the records, or the stored row's."""
    missing = F.raise_error(F.lit(f"a row of {taking.spec.name} that the log goes on from is not stored"))
    old = F.when(F.col("dd_old").isNotNull(), F.col("dd_old")[name]).otherwise(missing)
    return F.when(F.array_contains(F.split(KEPT, ","), str(place)), old).otherwise(quoted(name)).alias(name)


def _sought(taking: Taking, wanted: DataFrame, was: Mapping[str, str]) -> DataFrame:
    """The stored rows of the wanted keys: the key's columns, and ``dd_old``."""
    assert taking.log is not None
    schema = Schema((*taking.schema, DIFF_COLUMN))
    stored = updates(taking.spark, taking.log.uri, taking.log.files, schema)
    on = fold(lambda one, other: one & other, (quoted(name) == F.col(own) for name, own in was.items()))
    rows = consolidate(stored.join(wanted, on, "left_semi"))
    keys = (quoted(name).alias(own) for name, own in was.items())
    return rows.select(*keys, F.struct(*map(quoted, taking.schema.names)).alias("dd_old"))


def _has_kept(records: Records) -> bool:
    """Whether any record has a value from a stored row."""
    if records.local is not None:
        return bool(records.local[KEPT].null_count < records.local.num_rows)
    return not records.frame.where(F.col(KEPT).isNotNull()).isEmpty()
