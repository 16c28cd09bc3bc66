"""SQL that compares values of any type: Spark's own ``<=>`` takes neither maps nor variants."""

from __future__ import annotations

from dbt_incremental_dd.core.types import Array, Map, Struct, Type
from dbt_incremental_dd.logical.sql_types import is_orderable


def same(one: str, other: str, type: Type) -> str:
    """SQL that is true where two expressions of one type have the same value, or both are NULL, and else false."""
    return f"{comparable(one, type)} <=> {comparable(other, type)}"


def is_restorable(type: Type) -> bool:
    """Whether a value can be told from its comparable form: of types with maps, and others that have an order."""
    match type:
        case Array():
            return is_restorable(type.element)
        case Map():
            return is_restorable(type.value)
        case Struct():
            return all(is_restorable(field.type) for field in type.fields)
    return is_orderable(type)


def comparable(sql: str, type: Type, depth: int = 0) -> str:
    """An expression that ``<=>`` and ORDER BY take, equal where the values are: maps are their sorted entries."""
    one = f"dd_e{depth}"
    match type:
        case _ if is_orderable(type):
            return sql
        case Array():
            return f"transform({sql}, {one} -> {comparable(one, type.element, depth + 1)})"
        case Map() if is_orderable(type.value):
            return f"sort_array(map_entries({sql}))"
        case Map():
            entry = _entry(one, comparable(f"{one}.value", type.value, depth + 1))
            return f"sort_array(transform(map_entries({sql}), {one} -> {entry}))"
        case Struct():
            return _struct(sql, type, [comparable(part, of, depth) for part, of in _parts(sql, type)])
    return f"CASE WHEN {sql} IS NOT NULL THEN to_json(named_struct('v', {sql}), map('ignoreNullFields', 'false')) END"


def restored(sql: str, type: Type, depth: int = 0) -> str:
    """The value whose comparable form ``sql`` is. ``type``: the value's, which is restorable."""
    one = f"dd_e{depth}"
    match type:
        case _ if is_orderable(type):
            return sql
        case Array():
            return f"transform({sql}, {one} -> {restored(one, type.element, depth + 1)})"
        case Map() if is_orderable(type.value):
            return f"map_from_entries({sql})"
        case Map():
            entry = _entry(one, restored(f"{one}.value", type.value, depth + 1))
            return f"map_from_entries(transform({sql}, {one} -> {entry}))"
        case Struct():
            return _struct(sql, type, [restored(part, of, depth) for part, of in _parts(sql, type)])
    raise AssertionError(f"a value of type {type} is not told from its comparable form")


def _entry(of: str, value: str) -> str:
    return f"named_struct('key', {of}.key, 'value', {value})"


def _parts(sql: str, type: Struct) -> list[tuple[str, Type]]:
    return [(f"{sql}.`{field.name.replace('`', '``')}`", field.type) for field in type.fields]


def _struct(sql: str, type: Struct, values: list[str]) -> str:
    names = [field.name.replace("\\", "\\\\").replace("'", "\\'") for field in type.fields]
    fields = ", ".join(f"'{name}', {value}" for name, value in zip(names, values, strict=True))
    return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({fields}) END"
