"""Spark's types in Arrow: which have equivalents, and for which of them both agree on values."""

from __future__ import annotations

import datetime
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from functools import reduce as fold
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from dbt_incremental_dd.core import types as spark
from dbt_incremental_dd.core.schema import Schema

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_ARROW: dict[spark.Type, pa.DataType] = {
    spark.BYTE: pa.int8(),
    spark.SHORT: pa.int16(),
    spark.INTEGER: pa.int32(),
    spark.LONG: pa.int64(),
    spark.FLOAT: pa.float32(),
    spark.DOUBLE: pa.float64(),
    spark.STRING: pa.string(),
    spark.BOOLEAN: pa.bool_(),
    spark.BINARY: pa.binary(),
    spark.DATE: pa.date32(),
    spark.TIMESTAMP: pa.timestamp("us", "UTC"),
    spark.TIMESTAMP_NTZ: pa.timestamp("us"),
}


BOUNDED_TYPES = (*spark.INTEGERS, spark.STRING, spark.DATE)
"""Types that files have bounds for, and on whose equality Arrow and Spark agree."""


def parquet_dataset(
    paths: Sequence[str] | str, filesystem: fs.FileSystem, schema: pa.Schema | None = None
) -> ds.Dataset:
    """Stored files as a dataset, with the columns of ``schema`` or their own. Converts Spark's INT96 timestamps, and
    verifies pages' checksums."""
    import pyarrow.dataset as ds  # imports pandas, so not before a file is read

    form = ds.ParquetFileFormat(
        read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"),
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True),
    )
    return ds.dataset(paths, schema=schema, format=form, filesystem=filesystem)


@lru_cache(maxsize=1024)
def arrow_type(dtype: spark.Type) -> pa.DataType | None:
    """The Arrow type that is equivalent to a Spark type, nullable at all levels of nesting; None for special types, and
    for those that hold one."""
    match dtype:
        case spark.Decimal():
            return pa.decimal128(dtype.precision, dtype.scale)
        case spark.Struct():
            fields = [(field.name, arrow_type(field.type)) for field in dtype.fields]
            return pa.struct(fields) if fields and all(kind for _, kind in fields) else None
        case spark.Array():
            element = arrow_type(dtype.element)
            return element and pa.list_(pa.field("element", element))
        case spark.Map():
            key, value = arrow_type(dtype.key), arrow_type(dtype.value)
            return pa.map_(key, value) if key and value else None
    return _ARROW.get(dtype)


_BITS = {spark.BYTE: 7, spark.SHORT: 15, spark.INTEGER: 31, spark.LONG: 63}
_KINDS: dict[spark.Type, type] = {**dict.fromkeys(_BITS, int), spark.STRING: str, spark.DATE: datetime.date}


def fitting_values(values: Sequence[Any], dtype: spark.Type) -> Sequence[Any] | None:
    """Those of sorted values that a column of a Spark type can hold; None if it holds values of another type."""
    if values and type(values[0]) is not _KINDS.get(dtype):
        return None
    if values and dtype in _BITS:
        low, high = -(1 << _BITS[dtype]), (1 << _BITS[dtype]) - 1
        return values[bisect_left(values, low) : bisect_right(values, high)]
    return values


def is_readable(schema: Schema) -> bool:
    """Whether Arrow reads all types from files as Spark does."""
    return all(arrow_type(column.type) is not None for column in schema)


def is_flat(schema: Schema) -> bool:
    """Whether none of the types is nested, and Arrow has all of them."""
    return is_readable(schema) and not any(isinstance(column.type, spark.NESTED) for column in schema)


def is_plain(schema: Schema) -> bool:
    """Whether Arrow and Spark also agree on equality, which excludes floats (-0.0, NaN)."""
    return is_flat(schema) and not any(column.type in spark.FLOATS for column in schema)


def is_ordered(schema: Schema) -> bool:
    """Whether Arrow also sorts all types as Spark does."""
    return is_plain(schema) and not any(column.type in (spark.BOOLEAN, spark.BINARY) for column in schema)


def same_values(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where two columns of a plain type are equal; NULL equals NULL."""
    return pc.or_(pc.fill_null(pc.equal(one, other), False), pc.and_(pc.is_null(one), pc.is_null(other)))


def among(table: pa.Table, keys: Mapping[str, Sequence[Any]]) -> pa.Table:
    """The rows that have one of the values in each of these columns."""
    if not keys:
        return table
    masks = (pc.is_in(table[name], value_set=pa.array(values, table[name].type)) for name, values in keys.items())
    return table.filter(fold(pc.and_, masks))


def sorted_values(column: pa.ChunkedArray) -> list[Any] | None:
    """A column's distinct values without NULL, sorted; None if files have no bounds for its type."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind)):
        return None
    return sorted(pc.unique(column).drop_null().to_pylist())


def typed(table: pa.Table, schema: Schema) -> pa.Table:
    """The columns of ``schema``, cast to the equivalent Arrow types if there are any.

    Columns that have their type already are not cast: Arrow refuses to cast a NULL struct with non-nullable fields even
    to its own type.
    """
    expected = _equivalent(schema)
    if expected is not None and table.schema.equals(expected):
        return table
    columns = []
    for column in schema:
        values, dtype = table[column.name], arrow_type(column.type)
        if dtype is None or dtype == values.type:
            columns.append(values)
        elif pa.types.is_decimal(dtype) and pa.types.is_decimal(values.type):
            columns.append(cast_decimals(values, dtype))
        else:
            columns.append(values.cast(dtype))
    return pa.table(columns, list(schema.names))


@lru_cache(maxsize=4096)
def _equivalent(schema: Schema) -> pa.Schema | None:
    """The columns with the equivalent types; None where one has none."""
    types = {column.name: arrow_type(column.type) for column in schema}
    return pa.schema(types) if all(types.values()) and len(types) == len(schema.columns) else None


def cast_decimals(values: Any, dtype: pa.DataType) -> Any:
    """Decimals, of a column or one, in another decimal type. Raises ArrowInvalid where one does not fit or would lose
    digits. Arrow's own cast to more digits after the point may overflow its 128 bits and not notice."""
    source = values.type
    whole, room = source.precision - source.scale, dtype.precision - dtype.scale
    if dtype.scale > source.scale and whole > room:
        bounds = [values.as_py()] * 2 if isinstance(values, pa.Scalar) else list(pc.min_max(values).as_py().values())
        if any(bound is not None and abs(bound) >= 10**room for bound in bounds):
            raise pa.ArrowInvalid(f"a {source} does not fit into {dtype}")
    return pc.cast(values, dtype)


def nullable_inside(table: pa.Table) -> pa.Table:
    """The table with nullable types at all levels of nesting."""
    for index, field in enumerate(table.schema):
        dtype = nullable(field.type)
        if dtype != field.type:
            table = table.set_column(index, pa.field(field.name, dtype), table.column(index).cast(dtype))
    return table


def nullable(dtype: pa.DataType) -> pa.DataType:
    """The type, nullable at all levels of nesting. Spark's statement that a struct's field is not NULL holds for
    structs that exist; Arrow's also for NULL structs."""
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(field.name, nullable(field.type)) for field in dtype])
    if pa.types.is_list(dtype):
        return pa.list_(pa.field(dtype.value_field.name, nullable(dtype.value_type)))
    if pa.types.is_map(dtype):
        return pa.map_(nullable(dtype.key_type), nullable(dtype.item_type))
    return dtype
