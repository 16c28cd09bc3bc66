"""Envelope ``debezium``: change events of a database, as JSON with ``before``, ``after``, ``op`` and ``source``.

Events are ordered by their position in the database's log. An event that is delivered again is at or before the
position known of its key, and counts once. Tombstones (records of nothing) say nothing.
"""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.envelopes.envelope import KEY, POSITION, Change, Envelope, EnvelopeInput, Requirement
from dbt_incremental_dd.sources.envelopes.reserved import refuse_reserved
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.envelopes.upsert_spark import Candidates, merge
from dbt_incremental_dd.sources.poll_result import FILE, ORDER
from dbt_incremental_dd.trace.read import quote_name, schema_of, struct

_EVENT = ("before", "after", "op", "ts_ms", "source")
_SOURCE = StructType(
    [
        StructField("lsn", LongType()),
        StructField("scn", LongType()),
        StructField("file", StringType()),
        StructField("pos", LongType()),
        StructField("ts_ms", LongType()),
    ]
)


class Debezium(Envelope):
    """Events as upserts, by the position in the database's log."""

    name: ClassVar[str] = "debezium"
    ignores_nulls: ClassVar[bool] = True
    requires: ClassVar[Requirement | None] = KEY
    formats: ClassVar[tuple[str, ...]] = ("json", "avro")

    def record_of(self, row: StructType) -> StructType:
        """Debezium's JSON envelope around a row, with and without its ``payload`` wrapper."""
        event = [
            StructField("before", row),
            StructField("after", row),
            StructField("op", StringType()),
            StructField("ts_ms", LongType()),
            StructField("source", _SOURCE),
        ]
        return StructType([*event, StructField("payload", StructType(event))])

    def record_found(self, source: str, settings: EnvelopeSettings, found: StructType) -> StructType:
        refuse_reserved(source, settings, found.names)
        outer: dict[str, DataType] = {field.name: field.dataType for field in found.fields}
        payload = outer.get("payload")
        inner = {f.name: f.dataType for f in payload.fields} if isinstance(payload, StructType) else outer
        row = next((t for name in ("after", "before") if isinstance(t := inner.get(name), StructType)), None)
        if row is None:
            raise SourceError(
                f"source {source}: its records have neither `after` nor `before`; they have {', '.join(outer)}",
                "Is this a Debezium feed? If not, choose another envelope.",
            )
        refuse_reserved(source, settings, row.names)
        return self.record_of(row)

    def visible_schema(self, settings: EnvelopeSettings, records: Schema) -> Schema:
        """The columns of the row inside a record."""
        row = struct(records)["after"].dataType
        assert isinstance(row, StructType)
        return schema_of(row)

    def needed_columns(self, settings: EnvelopeSettings) -> tuple[str, ...]:
        """The order is that of the database's log."""
        return settings.key

    def sort_key(self, settings: EnvelopeSettings) -> tuple[str, ...]:
        return settings.key

    def apply(self, batch: EnvelopeInput) -> Change:
        """The events as upserts and deletes of the rows inside. Raises SourceError for one that cannot be applied."""
        frame = batch.records.frame
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
                f"source {batch.name}: an event with op {found[0][0]!r} cannot be applied",
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
        fields = (F.col(f"e_row.{quote_name(name)}").alias(name) for name in batch.schema.names)
        rows = events.select(*fields, position.alias(POSITION), (F.col("e_op") == "d").alias("dd_deleted"), *extra)
        return merge(batch, Candidates(rows, batch.records.estimate, same_again=True))
