"""Texts that stand for nested values, which the driver does not compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import STRING
from dbt_incremental_dd.relation.relation import Relation


def plainly(rows: Relation, names: Sequence[str]) -> Relation:
    """Rows on the driver, with texts for nested values that are equal where Spark's GROUP BY takes the values to be."""
    table = rows.table
    if table is None:
        return rows
    found: dict[str, Any] = {name: table.arrow[name] for name in table.arrow.column_names}
    types = {column.name: column.type for column in table.schema}
    for name in names:
        if not rows.groups_locally((name,)):
            found[name], types[name] = _texts(found[name]), STRING
    schema = Schema(tuple(Column(name, types[name]) for name in found))
    return Relation.of(rows.workspace, pa.table(found), schema)


def _texts(column: pa.ChunkedArray) -> pa.Array:
    texts = [None if value is None else repr(_normal(value)) for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def _normal(value: Any) -> Any:
    """A nested value such that equal ones have one text."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, dict):
        return [_normal(item) for item in value.values()]
    if isinstance(value, list):
        items = [_normal(item) for item in value]
        is_map = any(isinstance(item, tuple) for item in value)
        return sorted(items, key=repr) if is_map else items
    return tuple(map(_normal, value)) if isinstance(value, tuple) else value
