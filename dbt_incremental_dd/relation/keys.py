"""Restrictions of contents to some keys, pushed down to stored collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.local.table import member_mask
from dbt_incremental_dd.logical.node import Id
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.trace.arrow import fitting_values, sorted_values


@dataclass(frozen=True)
class Keys:
    """Restricts contents to rows whose ``columns`` equal (NULL-safely) a row of ``rows``, which has these columns.

    ``values``: a column's sorted values, where they are known, hold no NULL, and are of a type that files have bounds
    for. An ``advisory`` restriction may be ignored, in part or whole: the caller selects again.
    """

    columns: tuple[Id, ...]
    make: Callable[[], Relation] = field(compare=False)
    estimate: int
    values: Mapping[Id, Sequence[Any]] = field(default_factory=dict)
    advisory: bool = False
    is_local: bool = False
    """Whether the keys are on the driver."""

    @cached_property
    def rows(self) -> Relation:
        """The keys."""
        return self.make()

    def together(self, names: Mapping[Id, str]) -> pa.Table | None:
        """The keys under other names, where they are on the driver, of several columns, and hold no NULL: a reader may
        leave out what has values of each column, but not of one key."""
        arrow = self.rows.table.arrow if self.is_local and self.rows.table is not None else None
        if arrow is None or len(self.columns) == 1 or set(self.values) != set(self.columns):
            return None
        return arrow.select(list(self.columns)).rename_columns([names[id] for id in self.columns])

    def fitted(self, schema: Schema) -> Keys:
        """The same restriction of columns with these types.

        An equality may be between columns of several types, which Spark casts: then a column cannot have some of the
        values, or they tell nothing of it.
        """
        types = {column.name: column.type for column in schema}
        fitting = {id: fitting_values(found, types[id]) for id, found in self.values.items()}
        return replace(self, values={id: found for id, found in fitting.items() if found is not None})

    def renamed(self, to: Mapping[Id, Id]) -> Keys:
        """The same restriction in terms of other columns."""
        pairs = [(to[id], id) for id in self.columns]
        values = {to[id]: found for id, found in self.values.items()}
        columns = tuple(name for name, _ in pairs)
        return replace(self, columns=columns, make=lambda: self.rows.select(pairs), values=values)

    def only(self, columns: Sequence[Id]) -> Keys:
        """The weaker restriction by some of the columns."""
        kept = tuple(id for id in self.columns if id in columns)
        values = {id: found for id, found in self.values.items() if id in kept}
        return replace(self, columns=kept, make=lambda: self.rows.distinct(kept), values=values)

    def restricted(self, rows: Relation) -> Relation:
        """The rows that it admits."""
        return rows.restrict(self.rows, self.columns)


class KeyCache:
    """What keys have found last: the same ones, or some of them, are often looked for again."""

    def __init__(self) -> None:
        self._last: tuple[pa.Table, pa.Table] | None = None

    def of(self, keys: Keys, read: Callable[[], pa.Table]) -> pa.Table:
        """What ``read`` finds of the keys, among other rows; it is asked where they are not known."""
        wanted = keys.rows.table if keys.is_local else None
        if wanted is None:
            return read()
        arrow = wanted.arrow.select(list(keys.columns))
        if self._last is not None:
            known, table = self._last
            if known.schema.equals(arrow.schema) and pc.all(member_mask(arrow, known, keys.columns)).as_py():
                return table
        table = read()
        self._last = (arrow, table)
        return table


def keys_of(rows: Relation, columns: tuple[Id, ...]) -> Keys:
    """The distinct values that ``columns`` have in ``rows``."""
    is_local = rows.groups_locally(columns)
    found = rows.distinct(columns) if is_local else None
    values = _values(found or rows, columns)
    return Keys(columns, lambda: found or rows.distinct(columns), rows.estimate, values, is_local=is_local)


def _values(rows: Relation, columns: Sequence[Id]) -> dict[Id, list[Any]]:
    """Sorted values of columns, of types that files have bounds for, and without NULL."""
    if rows.table is None:
        return {}
    arrow = rows.table.arrow
    found = {id: sorted_values(arrow[id]) for id in columns if not arrow[id].null_count}
    return {id: values for id, values in found.items() if values is not None}
