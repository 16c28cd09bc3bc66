"""Spark's types, names and strings in DuckDB's SQL."""

from __future__ import annotations

from dbt_incremental_dd.core import types as spark

_TYPES = {
    spark.LONG: "BIGINT",
    spark.INTEGER: "INTEGER",
    spark.SHORT: "SMALLINT",
    spark.BYTE: "TINYINT",
    spark.FLOAT: "REAL",
    spark.STRING: "VARCHAR",
    spark.BINARY: "BLOB",
    spark.TIMESTAMP: "TIMESTAMPTZ",
    spark.TIMESTAMP_NTZ: "TIMESTAMP",
    spark.VOID: "VARCHAR",
}


def duckdb_type(type: spark.Type) -> str:
    """The DuckDB type, as written in a CAST."""
    match type:
        case spark.Array():
            return f"{duckdb_type(type.element)}[]"
        case spark.Map():
            return f"MAP({duckdb_type(type.key)}, {duckdb_type(type.value)})"
        case spark.Struct():
            fields = (f"{identifier(field.name)} {duckdb_type(field.type)}" for field in type.fields)
            return f"STRUCT({', '.join(fields)})"
    return _TYPES.get(type, type.text.upper())


def identifier(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def relation_name(collection: str) -> str:
    """A collection's quoted name: the part after the last dot is the identifier, the part before it the schema."""
    schema, _, name = collection.rpartition(".")
    return f"{identifier(schema)}.{identifier(name)}" if schema else identifier(name)


def literal(text: str) -> str:
    """A quoted string literal."""
    return "'" + text.replace("'", "''") + "'"
