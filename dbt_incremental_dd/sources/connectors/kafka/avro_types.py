"""Avro's types in Spark's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types as T

from dbt_incremental_dd.core.errors import SourceError

_PLAIN: Mapping[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "int": T.IntegerType(),
    "long": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "bytes": T.BinaryType(),
    "fixed": T.BinaryType(),
    "string": T.StringType(),
    "enum": T.StringType(),
}
_LOGICAL: Mapping[str, T.DataType] = {
    "date": T.DateType(),
    "timestamp-millis": T.TimestampType(),
    "timestamp-micros": T.TimestampType(),
    "local-timestamp-millis": T.TimestampNTZType(),
    "local-timestamp-micros": T.TimestampNTZType(),
    "time-millis": T.StringType(),
    "time-micros": T.StringType(),
    "uuid": T.StringType(),
}


def spark_struct(source: str, schema: Any) -> T.StructType:
    """The columns of a record. Raises SourceError for what has no type of Spark's."""
    found = _Types(source, schema.get("__named_schemas", {}) if isinstance(schema, dict) else {}).of(schema)
    if not isinstance(found, T.StructType):
        raise SourceError(
            f"source {source}: its messages are no records of Avro, but {found.simpleString()}",
            "Only records have columns.",
        )
    return found


class _Types:
    def __init__(self, source: str, named: Mapping[str, Any]) -> None:
        self._source = source
        self._named = named
        self._inside: list[str] = []

    def of(self, schema: Any) -> T.DataType:
        """Spark's type for one of Avro's."""
        if isinstance(schema, list):
            return self._of_union(schema)
        if isinstance(schema, str):
            return _PLAIN[schema] if schema in _PLAIN else self._of_name(schema)
        kind, logical = schema["type"], schema.get("logicalType")
        if logical == "decimal":
            return T.DecimalType(schema["precision"], schema.get("scale", 0))
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if kind == "record":
            return self._of_record(schema)
        if kind == "array":
            return T.ArrayType(self.of(schema["items"]))
        if kind == "map":
            return T.MapType(T.StringType(), self.of(schema["values"]))
        return self.of(kind)

    def _of_union(self, branches: list[Any]) -> T.DataType:
        kinds = [branch for branch in branches if branch != "null"]
        if len(kinds) != 1:
            raise self._refused(f"a union of {len(kinds)} types")
        return self.of(kinds[0])

    def _of_record(self, schema: Mapping[str, Any]) -> T.StructType:
        if schema["name"] in self._inside:
            raise self._refused(f"record {schema['name']}, which is part of itself")
        self._inside.append(schema["name"])
        fields = [T.StructField(field["name"], self.of(field["type"])) for field in schema["fields"]]
        self._inside.pop()
        return T.StructType(fields)

    def _of_name(self, name: str) -> T.DataType:
        if name not in self._named:
            raise self._refused(name)
        return self.of(self._named[name])

    def _refused(self, what: str) -> SourceError:
        return SourceError(
            f"source {self._source}: its messages hold {what}, which is no type of Spark's",
            "Declare the source's columns with their data_type; others are left out.",
        )
