"""Envelope ``debezium``: change events of a database, as JSON with ``before``, ``after``, ``op`` and ``source``.

Events are ordered by their position in the database's log. An event that is delivered again is at or before the
position known of its key, and counts once. Tombstones (records of nothing) say nothing.
"""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import LONG, STRING, Field
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.sources.envelopes.envelope import KEY, Change, Envelope, EnvelopeInput, Requirement
from dbt_incremental_dd.sources.envelopes.position import EventPosition
from dbt_incremental_dd.sources.envelopes.reserved import refuse_reserved
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.envelopes.upsert import ALIVE, Candidates, merged
from dbt_incremental_dd.sources.records import FILE, ORDER, localized, some
from dbt_incremental_dd.trace.spark_reader import quote_name, schema_of, struct

_EVENT = ("before", "after", "op", "ts_ms", "source")
_POSITION = EventPosition((Field("lsn", LONG), Field("file", STRING), Field("pos", LONG), Field("ts_ms", LONG)))
_PLACES = ("coalesce(e_source.lsn, e_source.scn)", "e_source.file", "e_source.pos", "coalesce(e_source.ts_ms, e_ts_ms)")
"""The position's fields, of an event."""
_OP, _FITS = "dd_op", "dd_fits"
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
        rows = localized(_rows(batch))
        bad = some(rows.filter(Expr(f"NOT {_FITS}")).columns([_OP]), 1)
        if bad is None or bad.num_rows:
            op = None if bad is None else bad[_OP][0].as_py()
            raise SourceError(
                f"source {batch.name}: an event with op {op!r} cannot be applied",
                "Known are c, u, r with `after`, and d with `before` (set REPLICA IDENTITY so that it holds the key).",
            )
        return merged(batch, Candidates(rows, _POSITION, may_delete=True, same_again=True))


def _rows(batch: EnvelopeInput) -> Relation:
    """The rows inside the events, as candidates; with the operation, and whether it is one that can be applied."""
    extra = [(name, Expr(name)) for name in (ORDER, FILE) if name in batch.records.names]
    parts = [(f"e_{name}", Expr(f"coalesce(payload.`{name}`, `{name}`)")) for name in _EVENT]
    events = batch.records.map([*parts, *extra])
    row = Expr("CASE WHEN e_op = 'd' THEN e_before ELSE e_after END")
    columns = [(name, Expr(f"e_row.{quote_name(name)}")) for name in batch.schema.names]
    position = [(name, Expr(place)) for name, place in zip(_POSITION.columns, _PLACES, strict=True)]
    alive = Expr("CASE WHEN e_op = 'd' THEN 0L ELSE 1L END")
    fits = Expr("coalesce(e_op IN ('c', 'u', 'd', 'r') AND e_row IS NOT NULL, FALSE)")
    marks = [(ALIVE, alive), (_OP, Expr("e_op")), (_FITS, fits)]
    return events.extend([("e_row", row)]).map([*columns, *position, *marks, *extra])
