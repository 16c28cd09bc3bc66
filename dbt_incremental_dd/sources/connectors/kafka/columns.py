"""The columns of a topic's records: as stored, as declared, or as its first messages have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import StringType, StructField, StructType

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.connectors.kafka import avro
from dbt_incremental_dd.sources.connectors.kafka.client import Span, messages
from dbt_incremental_dd.sources.connectors.kafka.feed import Feed, KafkaSpec
from dbt_incremental_dd.sources.record_schema import declared_columns, inferred
from dbt_incremental_dd.storage.filesystems import make_folder
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from dbt_incremental_dd.sources.poll import PollRequest

_LOOKED_AT = 10_000
"""Messages of each partition from which the columns are found."""


def record_columns(request: PollRequest[KafkaSpec], feed: Feed, spans: Sequence[Span]) -> Schema:
    """Raises SourceError where nothing says what they are."""
    if request.stored is not None:
        return request.stored
    told = declared_columns(request.workspace.session, request.spec)
    columns = schema_of(_found(request, feed, spans)) if told is None else told
    for name in feed.key:
        column = columns.find(name)
        if column is not None and column.name != name:
            raise SourceError(
                f"source {feed.source}: key is {name}, and the column is {column.name}", f"Set key: {column.name}."
            )
    return columns


def _found(request: PollRequest[KafkaSpec], feed: Feed, spans: Sequence[Span]) -> StructType:
    """By the first messages; a key's column that their values do not have is a string."""
    values = _first(feed, spans)
    if not values:
        raise SourceError(
            f"source {feed.source}: there are no messages in topic {feed.topic} yet, and no columns are declared",
            "Declare the source's columns with their data_type, or wait for the first message.",
        )
    found = avro.columns(feed, values[0]) if feed.format == "avro" else _of_lines(request, feed, values)
    row = inferred(request.spec, found)
    known = {field.name.lower() for field in row.fields}
    extra = [StructField(name, StringType()) for name in feed.key if name.lower() not in known]
    return StructType([*extra, *row.fields])


def _first(feed: Feed, spans: Sequence[Span]) -> list[bytes]:
    heads = [Span(s.partition, s.start, min(s.end, s.start + _LOOKED_AT)) for s in spans]
    tables = messages(feed, heads)
    try:
        return [value for table in tables for value in table["value"].drop_null().to_pylist() if value.strip()]
    finally:
        tables.close()


def _of_lines(request: PollRequest[KafkaSpec], feed: Feed, values: Sequence[bytes]) -> StructType:
    """What Spark finds in a file of them."""
    uri = request.storage.scratch("first")
    filesystem, path = request.storage.filesystem(uri)
    make_folder(filesystem, path)
    try:
        with filesystem.open_output_stream(f"{path}/messages.json") as out:
            for value in values:
                out.write(b" ".join(value.splitlines()) + b"\n")
        return request.spark.read.options(**feed.reader).json(spark_uri(f"{uri}/messages.json")).schema
    finally:
        request.storage.remove(uri)
