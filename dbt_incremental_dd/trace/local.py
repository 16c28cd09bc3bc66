"""Reading a trace on the driver, without a Spark job: for the few rows that a small delta touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.read import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_ARROW: dict[str, pa.DataType] = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(dtype: str) -> pa.DataType | None:
    """The Arrow type that says the same as a Spark type; None for nested and special ones."""
    if dtype.startswith("decimal("):
        precision, scale = dtype[len("decimal(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW.get(dtype)


def is_readable(schema: Schema) -> bool:
    """Whether Arrow reads the types from files as Spark does."""
    return all(arrow_type(column.type) is not None for column in schema)


def is_plain(schema: Schema) -> bool:
    """Whether Arrow and Spark also agree on which values are equal; not so for floats (-0.0, NaN)."""
    return is_readable(schema) and not any(column.type in ("float", "double") for column in schema)


def arrow_schema(schema: Schema, like: pa.Schema) -> pa.Schema:
    """The columns of ``like`` in the one Arrow type that each Spark type has; others as they are."""
    types = ((column.name, arrow_type(column.type)) for column in schema)
    return pa.schema([(name, like.field(name).type if dtype is None else dtype) for name, dtype in types])


def read_local(
    storage: Storage,
    uri: str,
    files: Sequence[DataFile],
    schema: Schema,
    keys: Mapping[str, Sequence[Any]] | None = None,
) -> pa.Table:
    """The files' rows with the columns of ``schema``; a column that a file lacks is NULL.

    ``keys`` leaves out rows with other values of these columns; row groups without any are not read.
    """
    filesystem, root = storage.filesystem(uri)
    filters = _filters(keys or {})
    tables = []
    for file in files:
        path = f"{root}/{file.path}"
        present = set(pq.read_schema(path, filesystem=filesystem).names)
        wanted = [name for name in schema.names if name in present]
        table = pq.read_table(
            path, columns=wanted, filesystem=filesystem, filters=filters, coerce_int96_timestamp_unit="us"
        )
        for name in schema.names:
            if name not in present:
                table = table.append_column(name, pa.nulls(table.num_rows))
        table = table.select(list(schema.names))
        tables.append(table.cast(arrow_schema(schema, table.schema)))
    return pa.concat_tables(tables)


def _filters(keys: Mapping[str, Sequence[Any]]) -> pc.Expression | None:
    """The keys as a condition; the bounds of each column's sorted values are what row groups are skipped by."""
    found = None
    for name, values in keys.items():
        column = pc.field(name)
        part = pc.scalar(False)
        if values:
            part = (column >= values[0]) & (column <= values[-1]) & column.isin(list(values))
        found = part if found is None else found & part
    return found


def lookup_local(table: pa.Table, other: pa.Table, keys: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """For each row of ``table``, ``columns`` of the row of ``other`` with the same keys; NULLs where there is none.

    ``other`` has each key at most once; NULL equals NULL.
    """
    positions = {key: i for i, key in enumerate(_tuples(other, keys))}
    found = pa.array([positions.get(key) for key in _tuples(table, keys)], pa.int64())
    return other.select(list(columns)).take(found)


def _tuples(table: pa.Table, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    if not columns:
        return [()] * table.num_rows
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))


def member_mask(table: pa.Table, keys: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """For each row, whether ``keys`` has a row with the same ``columns``; NULL equals NULL."""
    if len(columns) == 1:
        return pc.is_in(table[columns[0]], value_set=keys[columns[0]].combine_chunks())
    wanted = set(_tuples(keys, columns))
    return pa.chunked_array([pa.array([key in wanted for key in _tuples(table, columns)], pa.bool_())])


def consolidate_local(table: pa.Table, diffs: Sequence[str]) -> pa.Table:
    """Sums the diffs of equal rows and drops rows whose diffs are all zero; NULL equals NULL."""
    data = [name for name in table.column_names if name not in diffs]
    types = {name: table.schema.field(name).type for name in diffs}
    if data:
        summed = table.group_by(data, use_threads=False).aggregate([(name, "sum") for name in diffs])
        summed = summed.rename_columns([n.removesuffix("_sum") if n not in data else n for n in summed.column_names])
    else:
        totals = {name: pa.array([pc.sum(table[name]).as_py() or 0], types[name]) for name in diffs}
        summed = pa.table(totals)
    columns = [summed[name].cast(types[name]) if name in types else summed[name] for name in table.column_names]
    summed = pa.table(dict(zip(table.column_names, columns, strict=True)))
    kept = None
    for name in diffs:
        nonzero = pc.not_equal(summed[name], pa.scalar(0).cast(types[name]))
        kept = nonzero if kept is None else pc.or_(kept, nonzero)
    return summed if kept is None else summed.filter(kept)


def local_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """A DataFrame of a driver-side table, with exactly the types of ``schema``, in one partition.

    What is computed of one partition needs no exchange. The chunks are joined first, because Spark stops reading an
    Arrow table at an empty chunk, without an error.
    """
    if table.num_rows == 0:
        return spark.createDataFrame([], schema)
    made = spark.createDataFrame(table.combine_chunks()).coalesce(1)
    if [f.dataType for f in made.schema] == [f.dataType for f in schema]:
        return made
    return made.select(*(quoted(f.name).cast(f.dataType).alias(f.name) for f in schema))
