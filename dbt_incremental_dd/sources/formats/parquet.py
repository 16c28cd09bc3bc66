"""Columns of Parquet files, of which Arrow is to see what Spark sees."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import DATE, TIMESTAMP, Type

FIRST_DATE = {DATE: datetime.date(1582, 10, 15), TIMESTAMP: datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)}
"""Older ones are a matter of calendars, which Spark settles by what wrote the file."""


def as_spark_writes(schema: pa.Schema) -> pa.Schema:
    """The schema with strings and bytes in one Arrow form each; other writers note others, of the same Parquet type."""
    forms = {"string_view": pa.string(), "large_string": pa.string()}
    forms |= {"binary_view": pa.binary(), "large_binary": pa.binary()}
    return pa.schema([(field.name, forms.get(str(field.type), field.type)) for field in schema])


def is_ancient(column: pa.ChunkedArray, dtype: Type) -> bool:
    """Whether values of a Spark type are so old that Spark may see others than Arrow."""
    first = FIRST_DATE.get(dtype)
    return first is not None and bool(pc.any(pc.less(column, pa.scalar(first, column.type))).as_py())
