"""SQL that compares values of any type: Spark's own ``<=>`` takes neither maps nor variants."""

from __future__ import annotations

from dataclasses import dataclass

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


def comparable(sql: str, type: Type) -> str:
    """An expression that ``<=>`` and ORDER BY take, equal where the values are: maps are their sorted entries."""
    return _formed(sql, type, _COMPARABLE)


def restored(sql: str, type: Type) -> str:
    """The value whose comparable form ``sql`` is. ``type``: the value's, which is restorable."""
    return _formed(sql, type, _RESTORED)


@dataclass(frozen=True)
class _Form:
    """What becomes of maps: ``entries`` gets theirs, and ``made`` is made of these."""

    entries: str
    made: str


_COMPARABLE, _RESTORED = _Form("map_entries({})", "sort_array({})"), _Form("{}", "map_from_entries({})")


def _formed(sql: str, type: Type, form: _Form, depth: int = 0) -> str:
    one = f"dd_e{depth}"
    match type:
        case _ if is_orderable(type):
            return sql
        case Array():
            return f"transform({sql}, {one} -> {_formed(one, type.element, form, depth + 1)})"
        case Map():
            entries = form.entries.format(sql)
            if not is_orderable(type.value):
                value = _formed(f"{one}.value", type.value, form, depth + 1)
                entries = f"transform({entries}, {one} -> named_struct('key', {one}.key, 'value', {value}))"
            return form.made.format(entries)
        case Struct():
            return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({_fields(sql, type, form, depth)}) END"
    return f"CASE WHEN {sql} IS NOT NULL THEN to_json(named_struct('v', {sql}), map('ignoreNullFields', 'false')) END"


def _fields(sql: str, type: Struct, form: _Form, depth: int) -> str:
    """The arguments of ``named_struct``."""
    found = []
    for field in type.fields:
        name = field.name.replace("\\", "\\\\").replace("'", "\\'")
        quoted = f"`{field.name.replace('`', '``')}`"
        found.append(f"'{name}', {_formed(f'{sql}.{quoted}', field.type, form, depth)}")
    return ", ".join(found)
