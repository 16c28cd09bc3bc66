"""Numbers of columns in Parquet files, by which readers of Iceberg tables find them whatever they are called."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

FIELD_ID = b"PARQUET:field_id"
"""The key under which Arrow has a field's number, as text."""


def with_numbers(schema: pa.Schema, numbers: Mapping[str, int]) -> pa.Schema:
    """The schema with the number of each column and of what it nests. ``numbers``: by its path, such as ``s.a`` for
    a struct's field, ``l.element`` for a list's elements, ``m.key`` and ``m.value`` for those of a map."""
    return pa.schema([_numbered(field, field.name, numbers) for field in schema], schema.metadata)


def _numbered(field: pa.Field, path: str, numbers: Mapping[str, int]) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_numbered(inner, f"{path}.{inner.name}", numbers) for inner in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(
            _numbered(kind.key_field, f"{path}.key", numbers), _numbered(kind.item_field, f"{path}.value", numbers)
        )
    elif pa.types.is_list(kind):
        kind = pa.list_(_numbered(kind.value_field, f"{path}.element", numbers))
    return pa.field(field.name, kind, field.nullable, {FIELD_ID: str(numbers[path]).encode()})
