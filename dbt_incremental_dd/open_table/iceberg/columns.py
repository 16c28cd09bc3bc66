"""A model's columns as those of an Iceberg table: their types, and the numbers by which readers find them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dbt_incremental_dd.core import types as spark
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.open_table.table import POSITION

Fields = Sequence[Mapping[str, Any]]
"""Columns as the table's metadata has them, each with ``id``, ``name``, ``required`` and ``type``."""
POSITION_ID = 1
"""The number of ``dd_position``, which is in the files, but is no column of the table."""
_FLAT: dict[spark.Type, str] = {
    spark.BOOLEAN: "boolean",
    spark.BYTE: "int",
    spark.SHORT: "int",
    spark.INTEGER: "int",
    spark.LONG: "long",
    spark.FLOAT: "float",
    spark.DOUBLE: "double",
    spark.STRING: "string",
    spark.BINARY: "binary",
    spark.DATE: "date",
    spark.TIMESTAMP: "timestamptz",
    spark.TIMESTAMP_NTZ: "timestamp",
}
_TEXTS = ("char(", "varchar(", "string collate ")
_RESERVED = ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")


def require_columns(name: str, schema: Schema) -> None:
    """Raises ConfigError for columns that an Iceberg table cannot have; ``name``: the model's."""
    for column in schema:
        if column.name.lower() in _RESERVED:
            raise ConfigError(
                f"{name}: an Iceberg table cannot have the column {column.name}, which is one of Iceberg's own",
                "Rename it, or remove `output`.",
            )
        refused = next(_refused(column.type), None)
        if refused is not None:
            inside = "" if refused == column.type else f", which has {refused}"
            raise ConfigError(
                f"{name}: an Iceberg table cannot have the column {column.name}, of type {column.type}{inside}",
                "Cast it to another type, or remove `output`.",
            )
    paths: set[str] = set()
    for path, _ in _paths(fields_of(schema, (), POSITION_ID)):
        if path.lower() in paths:
            raise ConfigError(
                f"{name}: an Iceberg table cannot have two columns, or fields of columns, called {path}",
                "Rename one of them, or remove `output`.",
            )
        paths.add(path.lower())


def _refused(kind: spark.Type) -> Iterator[spark.Type]:
    """Types that Iceberg does not have, among a type and what it nests."""
    match kind:
        case spark.Struct():
            for field in kind.fields:
                yield from _refused(field.type)
        case spark.Array():
            yield from _refused(kind.element)
        case spark.Map():
            yield from _refused(kind.key)
            yield from _refused(kind.value)
        case spark.Decimal():
            if kind.scale < 0:
                yield kind
        case _ if kind not in _FLAT and not kind.text.startswith(_TEXTS):
            yield kind


def fields_of(schema: Schema, former: Iterable[Mapping[str, Any]], last: int) -> list[Mapping[str, Any]]:
    """The columns of a schema. One of ``former`` of the same name and type stays as it is; others have numbers after
    ``last``, the greatest that the table has had."""
    known = {field["name"]: field for field in former}
    numbers = iter(range(last + 1, 1 << 31))
    found = []
    for column in schema:
        field = known.get(column.name)
        if field is None or shape(field["type"]) != shape(_type(column.type, lambda: 0)):
            number = next(numbers)
            kind = _type(column.type, lambda: next(numbers))
            field = {"id": number, "name": column.name, "required": False, "type": kind}
        found.append(field)
    return found


def _type(kind: spark.Type, number: Callable[[], int]) -> Any:
    match kind:
        case spark.Struct():
            fields = [
                {"id": number(), "name": field.name, "required": False, "type": _type(field.type, number)}
                for field in kind.fields
            ]
            return {"type": "struct", "fields": fields}
        case spark.Array():
            element = {"element-id": number(), "element-required": False}
            return {"type": "list", **element, "element": _type(kind.element, number)}
        case spark.Map():
            ids = {"key-id": number(), "value-id": number(), "value-required": False}
            return {"type": "map", **ids, "key": _type(kind.key, number), "value": _type(kind.value, number)}
        case spark.Decimal():
            return f"decimal({kind.precision}, {kind.scale})"
    return _FLAT.get(kind, "string")


def shape(kind: Any) -> Any:
    """A type without what may differ between equal ones: the numbers of what it nests, and its comments."""
    if not isinstance(kind, Mapping):
        return str(kind).replace(" ", "")
    if kind["type"] == "struct":
        return ["struct", *((field["name"], shape(field["type"])) for field in kind["fields"])]
    return [kind["type"], *(shape(kind[part]) for part in ("element", "key", "value") if part in kind)]


def numbers_of(fields: Fields) -> dict[str, int]:
    """The number of each column and of what it nests, by its path; and that of ``dd_position``."""
    return {POSITION: POSITION_ID, **dict(_paths(fields))}


def _paths(fields: Fields, prefix: str = "") -> Iterator[tuple[str, int]]:
    for field in fields:
        path = f"{prefix}{field['name']}"
        yield path, int(field["id"])
        yield from _paths(_nested(field["type"]), f"{path}.")


def _nested(kind: Any) -> Fields:
    """What a type nests, as fields."""
    if not isinstance(kind, Mapping):
        return ()
    if kind["type"] == "struct":
        return tuple(kind["fields"])
    parts = ("element",) if kind["type"] == "list" else ("key", "value")
    return tuple({"name": part, "id": kind[f"{part}-id"], "type": kind[part]} for part in parts)


def name_mapping(fields: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """By which readers find columns in files that have no numbers, as those with nested columns that Spark writes
    (Iceberg's specification, "Column Projection")."""
    position = {"field-id": POSITION_ID, "names": [POSITION]}
    return [position, *({field["name"]: _mapped(field) for field in fields}).values()]


def _mapped(field: Mapping[str, Any]) -> dict[str, Any]:
    found = {"field-id": field["id"], "names": [field["name"]]}
    inner = [_mapped(one) for one in _nested(field["type"])]
    return {**found, "fields": inner} if inner else found
