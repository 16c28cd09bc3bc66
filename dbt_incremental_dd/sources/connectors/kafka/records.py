"""Messages of a topic become records: few on the driver, many by Spark, which reads them itself where it can."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.sources.connectors.kafka import avro, in_spark, text
from dbt_incremental_dd.sources.connectors.kafka.client import MESSAGES, Span, messages, no_messages
from dbt_incremental_dd.sources.connectors.kafka.columns import record_columns
from dbt_incremental_dd.sources.connectors.kafka.feed import Feed, KafkaSpec
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.records import in_spark as records_in_spark
from dbt_incremental_dd.sources.records import on_driver
from dbt_incremental_dd.storage.filesystems import make_folder
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.arrow import nullable_inside
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_folder import write_folder
from dbt_incremental_dd.trace.spark_reader import no_rows, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class TopicRecords:
    """Records, and the folders that they are read from as long as they are needed."""

    records: Relation
    scratch: tuple[str, ...] = ()


def read_records(request: PollRequest[KafkaSpec], feed: Feed, spans: Sequence[Span]) -> TopicRecords:
    """The records of the spans' messages."""
    stored = record_columns(request, feed, spans)
    missing = [name for name in feed.key if stored.find(name) is None]
    if missing:
        raise SourceError(
            f"source {feed.source}: there is no column {missing[0]}; there are {', '.join(stored.names)}",
            "Correct `key` in the source's settings.",
        )
    return _Reader(request, feed, spans, stored).records()


class _Reader:
    """``stored``: the records' columns."""

    def __init__(self, request: PollRequest[KafkaSpec], feed: Feed, spans: Sequence[Span], stored: Schema) -> None:
        self._request = request
        self._feed = feed
        self._spans = spans
        self._stored = stored
        self._count = sum(span.end - span.start for span in spans)
        self._skips_nulls = request.spec.envelope.ignores_nulls

    def records(self) -> TopicRecords:
        feed, spark = self._feed, self._request.spark
        if not feed.reads_avro and self._count > self._request.workspace.thresholds.taken_rows:
            frame = in_spark.read(spark, feed, self._spans)
            if frame is not None:
                return self._kept_by_spark(frame)
        tables: Iterator[pa.Table] = messages(feed, self._spans)
        if self._count <= self._request.workspace.thresholds.taken_rows:
            first = next(tables, None)
            second = next(tables, None)
            if second is None:
                return TopicRecords(self._few(no_messages() if first is None else first))
            tables = itertools.chain((first, second), tables)
        return self._many(tables)

    def _few(self, table: pa.Table) -> Relation:
        """Of messages that are on the driver."""
        workspace = self._request.workspace
        if self._feed.reads_avro:
            found, schema = avro.decoded(self._feed, table, self._stored, skips_nulls=self._skips_nulls)
            return on_driver(workspace, found, schema)
        rows = text.parsed(self._feed, table, self._stored, workspace.moments, skips_nulls=self._skips_nulls)
        if rows is not None:
            return on_driver(workspace, rows, self._stored + text.added(self._feed))
        raw = workspace.frame(Table(table, MESSAGES))
        frame = text.decoded(self._feed, raw, self._stored, skips_nulls=self._skips_nulls)
        return records_in_spark(workspace, frame, table.num_rows)

    def _many(self, tables: Iterable[pa.Table]) -> TopicRecords:
        """Of messages that are written to files as they come, so that the driver holds few at a time."""
        storage, spark = self._request.storage, self._request.spark
        scratch = storage.scratch("topic")
        try:
            if self._feed.reads_avro:
                schema = avro.schema_of_records(self._feed, self._stored)
                made = (avro.decoded(self._feed, one, self._stored, skips_nulls=self._skips_nulls)[0] for one in tables)
                return self._counted(_filed(spark, storage, scratch, made, schema), scratch)
            raw = _filed(spark, storage, f"{scratch}/raw", tables, MESSAGES)
            return self._kept_by_spark(raw, scratch)
        except BaseException:
            storage.remove(scratch)
            raise

    def _kept_by_spark(self, frame: DataFrame, scratch: str = "") -> TopicRecords:
        """Decoded once, and stored for as long as the records are read."""
        storage, spark = self._request.storage, self._request.spark
        scratch = scratch or storage.scratch("topic")
        try:
            records = text.decoded(self._feed, frame, self._stored, skips_nulls=self._skips_nulls)
            write_folder(storage, records, f"{scratch}/records")
            kept = spark.read.schema(records.schema).parquet(spark_uri(f"{scratch}/records"))
        except BaseException:
            storage.remove(scratch)
            raise
        return self._counted(kept, scratch)

    def _counted(self, frame: DataFrame, scratch: str) -> TopicRecords:
        return TopicRecords(records_in_spark(self._request.workspace, frame, self._count), (scratch,))


def _filed(spark: SparkSession, storage: Storage, uri: str, tables: Iterable[pa.Table], schema: Schema) -> DataFrame:
    """The tables as a DataFrame over files, a file each."""
    written = list(_written(storage, uri, tables))
    if not written:
        return no_rows(spark, struct(schema))
    return spark.read.schema(struct(schema)).parquet(*map(spark_uri, written))


def _written(storage: Storage, uri: str, tables: Iterable[pa.Table]) -> Iterator[str]:
    filesystem, path = storage.filesystem(uri)
    make_folder(filesystem, path)
    for number, table in enumerate(tables):
        pq.write_table(nullable_inside(table), f"{path}/{number:06}.parquet", filesystem=filesystem)
        yield f"{uri}/{number:06}.parquet"
