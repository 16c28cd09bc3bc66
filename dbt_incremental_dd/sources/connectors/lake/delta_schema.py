"""A Delta table's columns: as queries see them, and as its files call them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.types import StructType

from dbt_incremental_dd.core.errors import SourceError, UnsupportedSQL
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.spark_reader import refuse_unstorable

_PHYSICAL = "delta.columnMapping.physicalName"
_ID = "delta.columnMapping.id"


def columns_of(name: str, metadata: Mapping[str, Any]) -> Schema:
    """The table's columns. Raises SourceError, naming the source, for types that cannot be kept."""
    found = json.loads(metadata["schemaString"])
    try:
        refuse_unstorable(StructType.fromJson(found))
    except UnsupportedSQL as error:
        remedy = "Make a view that casts it, and read that."
        raise SourceError(f"source {name}: {error.construct}", remedy) from error
    return Schema.from_json(json.dumps(_renamed(found, lambda field: str(field["name"]))))


def physical_columns(metadata: Mapping[str, Any]) -> StructType:
    """The same columns as files have them, also inside of nested ones."""
    found = json.loads(metadata["schemaString"])
    return StructType.fromJson(_renamed(found, _physical_name))


def physical_partitions(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The partition columns' names in the log."""
    names = metadata.get("partitionColumns") or ()
    fields = {field["name"]: field for field in json.loads(metadata["schemaString"])["fields"]}
    return tuple(_physical_name(fields[name]) for name in names)


def is_by_id(metadata: Mapping[str, Any]) -> bool:
    """Whether files' columns are found by numbers, whatever their names."""
    return dict(metadata.get("configuration") or {}).get("delta.columnMapping.mode") == "id"


def physical_ids(metadata: Mapping[str, Any]) -> dict[int, str]:
    """The columns' names in files, by their numbers."""
    fields = json.loads(metadata["schemaString"])["fields"]
    return {field["metadata"][_ID]: _physical_name(field) for field in fields if _ID in field["metadata"]}


def _physical_name(field: Mapping[str, Any]) -> str:
    return str(field.get("metadata", {}).get(_PHYSICAL, field["name"]))


def _renamed(found: Any, name: Callable[[Mapping[str, Any]], str]) -> Any:
    """A type's JSON with other names, and without the fields' metadata."""
    if not isinstance(found, dict):
        return found
    if found["type"] == "struct":
        fields = [
            {**field, "name": name(field), "type": _renamed(field["type"], name), "metadata": {}}
            for field in found["fields"]
        ]
        return {**found, "fields": fields}
    inner = {key: _renamed(found[key], name) for key in ("elementType", "keyType", "valueType") if key in found}
    return {**found, **inner}
