"""A small table of Parquet files that Spark has written, read on the driver: no job has to be planned.

What Arrow might read otherwise than Spark is left to Spark: partitions, files that lack a column, other writers' files
and those with dates of the former calendar, columns that Spark pads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import TIMESTAMP, TIMESTAMP_NTZ
from dbt_incremental_dd.trace.arrow import arrow_type, is_flat, parquet_dataset

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SPARK = b"org.apache.spark.version"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"


def read_small(
    filesystem: pafs.FileSystem, paths: Sequence[str], schema: Schema, declared: StructType, most: int
) -> pa.Table | None:
    """The files' rows, with the columns of ``schema``; None where Spark has to read them, or if they are more than
    ``most``.

    ``declared``: the same columns as Spark has them.
    """
    if not paths or not is_flat(schema) or any(_PADDED in field.metadata for field in declared):
        return None
    try:
        footers = [pq.read_metadata(path, filesystem=filesystem) for path in paths]
        if sum(footer.num_rows for footer in footers) > most:
            return None
        if not all(_is_alike(footer, schema) for footer in footers):
            return None
        columns = pa.schema([(column.name, arrow_type(column.type)) for column in schema])
        return parquet_dataset(list(paths), filesystem, columns).to_table()
    except (OSError, pa.ArrowException):  # such as a file that has gone: Spark says what is wrong
        return None


def _is_alike(footer: pq.FileMetaData, schema: Schema) -> bool:
    """Whether the file has all columns, with values that Arrow reads as Spark does."""
    written = footer.metadata or {}
    if _SPARK not in written or any(key in written for key in _LEGACY):
        return False
    own = {footer.schema.column(i).path: footer.schema.column(i).physical_type for i in range(footer.num_columns)}
    types = {field.name: field.type for field in footer.schema.to_arrow_schema()}
    return all(column.name in own and _is_type(column, own[column.name], types[column.name]) for column in schema)


def _is_type(column: Column, physical: str, found: pa.DataType) -> bool:
    if physical == "INT96":
        return column.type == TIMESTAMP
    if column.type in (TIMESTAMP, TIMESTAMP_NTZ) and physical != "INT64":
        return False
    return bool(found == arrow_type(column.type))
