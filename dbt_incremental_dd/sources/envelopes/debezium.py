"""Envelope ``debezium``: change events of a database, as JSON with ``before``, ``after``, ``op`` and ``source``.

Events are ordered by their position in the database's log. An event that is delivered again is at or before the
position known of its key, and counts once. Tombstones (records of nothing) say nothing.
"""

from __future__ import annotations

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.sources.envelopes.envelope import POSITION, Change, Taking
from dbt_incremental_dd.sources.envelopes.upsert_spark import Candidates, merge
from dbt_incremental_dd.sources.poll_result import FILE, ORDER
from dbt_incremental_dd.trace.read import quote_name

_EVENT = ("before", "after", "op", "ts_ms", "source")


def change(taking: Taking) -> Change:
    """The events as upserts and deletes of the rows inside."""
    frame = taking.records.frame
    parts = {name: F.coalesce(F.col(f"payload.{name}"), F.col(name)).alias(f"e_{name}") for name in _EVENT}
    extra = [F.col(name) for name in (ORDER, FILE) if name in frame.columns]
    events = frame.select(*parts.values(), *extra)
    bad = events.where(
        "e_op IS NULL OR e_op NOT IN ('c', 'u', 'd', 'r') OR (e_op = 'd' AND e_before IS NULL) "
        "OR (e_op != 'd' AND e_after IS NULL)"
    )
    found = bad.select("e_op").limit(1).collect()
    if found:
        raise SourceError(
            f"source {taking.spec.name}: an event with op {found[0][0]!r} cannot be applied",
            "Known are c, u, r with `after`, and d with `before` (set REPLICA IDENTITY so that it holds the key).",
        )
    row = F.when(F.col("e_op") == "d", F.col("e_before")).otherwise(F.col("e_after"))
    events = events.withColumn("e_row", row)
    position = F.struct(
        F.coalesce("e_source.lsn", "e_source.scn").alias("lsn"),
        F.col("e_source.file").alias("file"),
        F.col("e_source.pos").alias("pos"),
        F.coalesce("e_source.ts_ms", "e_ts_ms").alias("ts_ms"),
    )
    fields = (F.col(f"e_row.{quote_name(name)}").alias(name) for name in taking.schema.names)
    rows = events.select(*fields, position.alias(POSITION), (F.col("e_op") == "d").alias("dd_deleted"), *extra)
    return merge(taking, Candidates(rows, taking.records.estimate, same_again=True))


def row_fields(record: StructType) -> StructType:
    """The columns of the row inside a record."""
    row = record["after"].dataType
    assert isinstance(row, StructType)
    return row
