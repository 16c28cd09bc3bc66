"""Columns of Parquet files, of which Arrow is to see what Spark sees."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import DATE, TIMESTAMP, Array, Map, Struct, Type

FIRST_DATE = {DATE: datetime.date(1582, 10, 15), TIMESTAMP: datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)}
"""Older ones are a matter of calendars, which Spark settles by what wrote the file."""


_FORMS = {
    **dict.fromkeys((pa.string_view(), pa.large_string()), pa.string()),
    **dict.fromkeys((pa.binary_view(), pa.large_binary()), pa.binary()),
}


def as_spark_writes(schema: pa.Schema) -> pa.Schema:
    """The schema with strings, bytes and arrays in one Arrow form each, nullable at all levels; other writers note
    others, of the same Parquet type."""
    return pa.schema([(field.name, _form(field.type)) for field in schema])


def _form(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _form(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_form(kind.key_type), _form(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _form(kind.value_type)))
    return _FORMS.get(kind, kind)


def flat_parts(column: pa.ChunkedArray, dtype: Type) -> Iterator[tuple[pa.ChunkedArray, Type]]:
    """The values of flat types in a column of a Spark type, at all levels of nesting, and these types."""
    match dtype:
        case Struct():
            for number, field in enumerate(dtype.fields):
                yield from flat_parts(pc.struct_field(column, [number]), field.type)
        case Array():
            yield from flat_parts(pc.list_flatten(column), dtype.element)
        case Map():
            kind = column.type
            keys = pa.chunked_array([chunk.keys for chunk in column.chunks], kind.key_type)
            values = pa.chunked_array([chunk.items for chunk in column.chunks], kind.item_type)
            yield from flat_parts(keys, dtype.key)
            yield from flat_parts(values, dtype.value)
        case _:
            yield column, dtype


def is_ancient(column: pa.ChunkedArray, dtype: Type) -> bool:
    """Whether it holds values of a Spark type that are so old that Spark may see others than Arrow."""
    return any(_are_ancient(values, type) for values, type in flat_parts(column, dtype))


def _are_ancient(values: pa.ChunkedArray, dtype: Type) -> bool:
    first = FIRST_DATE.get(dtype)
    return first is not None and bool(pc.any(pc.less(values, pa.scalar(first, values.type))).as_py())
