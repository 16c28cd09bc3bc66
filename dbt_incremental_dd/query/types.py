"""Spark's types in DuckDB."""

from __future__ import annotations

_SIMPLE = {
    "long": "BIGINT",
    "integer": "INTEGER",
    "short": "SMALLINT",
    "byte": "TINYINT",
    "float": "REAL",
    "string": "VARCHAR",
    "binary": "BLOB",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "void": "VARCHAR",
}


def duckdb_type(json_type: object) -> str:
    """The type in a CAST, of a Spark type given as JSON value."""
    if isinstance(json_type, str):
        return _SIMPLE.get(json_type, json_type.upper())
    assert isinstance(json_type, dict)
    if json_type["type"] == "array":
        return f"{duckdb_type(json_type['elementType'])}[]"
    if json_type["type"] == "map":
        return f"MAP({duckdb_type(json_type['keyType'])}, {duckdb_type(json_type['valueType'])})"
    fields = ", ".join(f"{identifier(f['name'])} {duckdb_type(f['type'])}" for f in json_type["fields"])
    return f"STRUCT({fields})"


def identifier(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def relation_name(collection: str) -> str:
    """A collection as SQL names it: what follows the last dot is its identifier."""
    schema, _, name = collection.rpartition(".")
    return f"{identifier(schema)}.{identifier(name)}" if schema else identifier(name)


def literal(text: str) -> str:
    """A text as SQL quotes it."""
    return "'" + text.replace("'", "''") + "'"
