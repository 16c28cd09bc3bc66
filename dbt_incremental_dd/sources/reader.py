"""Reading files' records: by Spark, or on the driver where a few rows of Parquet mean the same to Arrow."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs as pafs
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.sources import json_lines
from dbt_incremental_dd.sources.arrival import CORRUPT, FILE
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.exchange import Records
from dbt_incremental_dd.sources.partitions import Partition, Unclear, completed, without
from dbt_incremental_dd.sources.record_schema import declared, inferred
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import arrow_type, is_readable
from dbt_incremental_dd.trace.local import Local
from dbt_incremental_dd.trace.read import quoted, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIRST_DATE = {"date": datetime.date(1582, 10, 15), "timestamp": datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)}
"""Older ones are a matter of calendars, which Spark settles by what wrote the file."""


def read(
    spark: SparkSession, spec: SourceSpec, uris: Sequence[str], stored: Schema | None, base: str | None = None
) -> DataFrame:
    """The files' records in the stored columns, or the declared ones, or those that Spark finds in them.

    ``base``: the folder below which folders' names give columns' values.
    """
    reader = spark.read.options(**dict(spec.options))
    reader = reader if base is None else reader.option("basePath", base)
    wanted = declared(spark, spec) if stored is None else struct(stored)
    if wanted is None:
        if not uris:
            raise SourceError(
                f"source {spec.name}: there are no files at {spec.path} yet, and no columns are declared",
                "Declare the source's columns with their data_type, or wait for the first file.",
            )
        inferring = reader.option("inferSchema", "true") if spec.format == "csv" else reader
        wanted = inferred(spec, inferring.format(str(spec.format)).load(list(uris)).schema)
    if not uris:
        return spark.createDataFrame([], wanted)
    if spec.format in ("json", "csv"):
        text = StructType([*wanted.fields]).add(CORRUPT, StringType())
        # A header that says otherwise is an error; by default columns are taken in the order in which they come.
        reader = reader.option("enforceSchema", "false") if spec.format == "csv" else reader
        reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT).schema(text)
    else:
        reader = reader.schema(wanted)
    frame = reader.format(str(spec.format)).load(list(uris))
    corrupt = [quoted(CORRUPT)] if spec.format in ("json", "csv") else []
    columns = [quoted(field.name).alias(field.name) for field in wanted]
    return frame.select(*columns, *corrupt, F.col("_metadata.file_path").alias(FILE))


def read_few(
    spark: SparkSession,
    spec: SourceSpec,
    filesystem: pafs.FileSystem,
    files: Mapping[str, Partition],
    stored: Schema,
) -> Records | None:
    """The records of small files, each of a partition, without a Spark job; None where that might not be what Spark
    reads."""
    try:
        if spec.format == "json":
            return _few_lines(spark, spec, filesystem, files, stored)
        return _few_rows(spark, spec, filesystem, files, stored)
    except Unclear:
        return None


def _few_rows(
    spark: SparkSession,
    spec: SourceSpec,
    filesystem: pafs.FileSystem,
    files: Mapping[str, Partition],
    stored: Schema,
) -> Records | None:
    if spec.format != "parquet" or spec.options or not is_readable(stored):
        return None
    tables, rows = [], 0
    for path, partition in files.items():
        wanted = [(column.name, arrow_type(column.type)) for column in without(stored, partition)]
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            rows += file.metadata.num_rows
            found = as_spark_writes(file.schema_arrow)
            if rows > limits.TAKEN_ROWS or [(field.name, field.type) for field in found] != wanted:
                return None
            table = completed(file.read().cast(found).replace_schema_metadata(None), stored, partition)
        tables.append(table.append_column(FILE, pa.array([path] * table.num_rows, pa.string())))
    table = pa.concat_tables(tables)
    if any(is_ancient(table[column.name], column.type) for column in stored):
        return None
    return Records(spark, Local(spark, table, Schema((*stored.columns, Column(FILE, "string")))))


def _few_lines(
    spark: SparkSession,
    spec: SourceSpec,
    filesystem: pafs.FileSystem,
    files: Mapping[str, Partition],
    stored: Schema,
) -> Records | None:
    size = sum(info.size or 0 for info in filesystem.get_file_info(list(files)))
    if spec.options or size > json_lines.MOST_BYTES:
        return None
    tables = []
    for path, partition in files.items():
        with filesystem.open_input_file(path) as file:
            table = json_lines.parse(file.read(), without(stored, partition))
        if table is None:
            return None
        table = completed(table, stored, partition)
        tables.append(table.append_column(FILE, pa.array([path] * table.num_rows, pa.string())))
    return Records(spark, Local(spark, pa.concat_tables(tables), Schema((*stored.columns, Column(FILE, "string")))))


def as_spark_writes(schema: pa.Schema) -> pa.Schema:
    """The schema with strings and bytes in one Arrow form each; other writers note others, of the same Parquet type."""
    forms = {"string_view": pa.string(), "large_string": pa.string()}
    forms |= {"binary_view": pa.binary(), "large_binary": pa.binary()}
    return pa.schema([(field.name, forms.get(str(field.type), field.type)) for field in schema])


def is_ancient(column: pa.ChunkedArray, dtype: str) -> bool:
    """Whether values of a Spark type are so old that Spark may see others than Arrow."""
    first = _FIRST_DATE.get(dtype)
    return first is not None and bool(pc.any(pc.less(column, pa.scalar(first, column.type))).as_py())
