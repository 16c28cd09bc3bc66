"""Spark's types as its SQL writes them, and what plans need to know of them."""

from __future__ import annotations

import re

from dbt_incremental_dd.core import types as spark

_NAMES = {spark.LONG: "BIGINT", spark.INTEGER: "INT", spark.SHORT: "SMALLINT", spark.BYTE: "TINYINT"}
_TYPES = {name: type for type, name in _NAMES.items()}
_DECIMAL = re.compile(r"DECIMAL(\((\d+)(,(\d+))?\))?", re.ASCII)


def is_orderable(type: spark.Type) -> bool:
    """Whether ORDER BY takes the type: maps and variants have no order."""
    match type:
        case spark.Array():
            return is_orderable(type.element)
        case spark.Struct():
            return all(is_orderable(field.type) for field in type.fields)
        case spark.Map():
            return False
    return type not in (spark.VARIANT, spark.CALENDAR_INTERVAL)


def sql_type(type: spark.Type) -> str:
    """The type as SQL writes it in a CAST."""
    match type:
        case spark.Array():
            return f"ARRAY<{sql_type(type.element)}>"
        case spark.Map():
            return f"MAP<{sql_type(type.key)}, {sql_type(type.value)}>"
        case spark.Struct():
            fields = (f"`{field.name.replace('`', '``')}`: {sql_type(field.type)}" for field in type.fields)
            return f"STRUCT<{', '.join(fields)}>"
    return _NAMES.get(type, type.text.upper())


def type_of(sql: str) -> spark.Type:
    """The type that SQL's name of it means. Raises ValueError for one with parts, and for others that are not known."""
    name = sql.upper().replace(" ", "")
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return spark.Decimal(int(decimal[2] or 10), int(decimal[4] or 0))
    return _TYPES.get(name) or spark.parse(name.lower())
