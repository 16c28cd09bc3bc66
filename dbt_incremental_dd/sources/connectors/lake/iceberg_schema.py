"""An Iceberg table's columns: found in data files by their numbers, whatever they are called there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from dbt_incremental_dd.sources.connectors.lake.following import FullScanRequired

_FLAT = ("boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary")
"""Types that Spark's own reader of Parquet files sees as Iceberg's does; and decimals."""


def numbers(fields: Sequence[Mapping[str, Any]], prefix: str = "") -> Iterator[tuple[str, int]]:
    """The number of every column and of what it nests, by its path."""
    for field in fields:
        name = f"{prefix}{field['name']}"
        yield name, int(field["id"])
        yield from numbers(_nested(field["type"]), f"{name}.")


def _nested(kind: Any) -> list[Mapping[str, Any]]:
    """What a type nests, as fields."""
    if not isinstance(kind, dict):
        return []
    if kind["type"] == "struct":
        return list(kind["fields"])
    parts = {"list": ("element",), "map": ("key", "value")}[kind["type"]]
    return [{"name": part, "id": kind[f"{part}-id"], "type": kind[part]} for part in parts]


def columns_in(file: pa.Schema, fields: Sequence[Mapping[str, Any]], spark: StructType) -> StructType:
    """What a data file calls the table's columns. Raises FullScanRequired if Spark might read it
    otherwise than Iceberg does."""
    if not any(_number(field) is not None for field in file):
        raise FullScanRequired("it has data files without Iceberg's numbers of columns")
    return _struct(list(file), fields, spark)


def _struct(found: Sequence[pa.Field], fields: Sequence[Mapping[str, Any]], spark: StructType) -> StructType:
    by_number = {_number(field): field for field in found}
    made = []
    for number, (field, own) in enumerate(zip(fields, spark, strict=True)):
        if field.get("initial-default") is not None:
            raise FullScanRequired(f"column {field['name']} has a default for rows that were there before it")
        inside = by_number.get(int(field["id"]))
        name = f"dd_absent{number}" if inside is None else inside.name
        made.append(StructField(name, _type(inside, field["type"], own.dataType)))
    return StructType(made)


def _type(found: pa.Field | None, kind: Any, spark: DataType) -> DataType:
    """Spark's type, with the names that the file has inside."""
    if not isinstance(kind, dict):
        if kind not in _FLAT and not str(kind).startswith("decimal"):
            raise FullScanRequired(f"it has columns of type {kind}")
        return spark
    inner = None if found is None else found.type
    if isinstance(spark, StructType):
        fields = [] if inner is None else [inner.field(i) for i in range(inner.num_fields)]
        return _struct(fields, kind["fields"], spark)
    if isinstance(spark, ArrayType):
        element = None if inner is None else inner.value_field
        return ArrayType(_type(element, kind["element"], spark.elementType))
    assert isinstance(spark, MapType)
    key, value = (None, None) if inner is None else (inner.key_field, inner.item_field)
    return MapType(_type(key, kind["key"], spark.keyType), _type(value, kind["value"], spark.valueType))


def _number(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(b"PARQUET:field_id")
    return None if text is None else int(text)
