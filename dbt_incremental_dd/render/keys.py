"""Restrictions of contents to some keys, pushed down to stored collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from functools import reduce as fold
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.logical.nodes import Id
from dbt_incremental_dd.render.rows import Rows
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import fitting_values, is_plain, sorted_values
from dbt_incremental_dd.trace.local import Local, member_mask

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Keys:
    """Restricts contents to rows whose ``columns`` equal (NULL-safely) a row of ``frame``, which has these columns.

    ``table`` is the same on the driver, if it is there; ``values``: a column's sorted values, where they are on the
    driver, hold no NULL, and are of a type that files have bounds for. An ``advisory`` restriction may be ignored, in
    part or whole: the caller selects again.
    """

    columns: tuple[Id, ...]
    make: Callable[[], DataFrame] = field(compare=False)
    estimate: int
    values: Mapping[Id, Sequence[Any]] = field(default_factory=dict)
    advisory: bool = False
    table: pa.Table | None = field(default=None, compare=False)

    @cached_property
    def frame(self) -> DataFrame:
        """The keys in Spark."""
        return self.make()

    @property
    def is_few(self) -> bool:
        """Whether a restriction by them is worth assuming."""
        return self.estimate <= limits.BROADCAST_ROWS

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
        columns = tuple(to[id] for id in self.columns)
        values = {to[id]: found for id, found in self.values.items()}
        table = None if self.table is None else self.table.rename_columns(list(columns))

        def make() -> DataFrame:
            return self.frame.select(*(F.col(id).alias(to[id]) for id in self.columns))

        return replace(self, columns=columns, make=make, values=values, table=table)

    def only(self, columns: Sequence[Id]) -> Keys:
        """The weaker restriction by some of the columns."""
        kept = tuple(id for id in self.columns if id in columns)
        values = {id: found for id, found in self.values.items() if id in kept}
        table = None if self.table is None else _distinct(self.table, kept)
        return replace(self, columns=kept, make=lambda: self.frame.select(*kept).distinct(), values=values, table=table)

    def semi_join(self, frame: DataFrame) -> DataFrame:
        """The rows of ``frame`` that it admits."""
        other = self.frame.select(*(F.col(id).alias(f"dd_key_{id}") for id in self.columns))
        if self.estimate <= limits.BROADCAST_ROWS:
            other = F.broadcast(other)
        return frame.join(other, null_safe({id: f"dd_key_{id}" for id in self.columns}), "left_semi")

    def restricted(self, rows: Rows) -> Rows:
        """The rows that it admits; on the driver where both are there."""
        local = rows.source
        if not isinstance(local, Local) or self.table is None or not is_plain(local.schema.select(self.columns)):
            return replace(rows, source=self.semi_join(rows.frame))
        if self.table.select(list(self.columns)).schema.types != local.table.select(list(self.columns)).schema.types:
            return replace(rows, source=self.semi_join(rows.frame))
        kept = local.table.filter(member_mask(local.table, self.table, self.columns))
        return replace(rows, source=local.with_table(kept), estimate=kept.num_rows)


class Found:
    """What keys have found last: the same ones, or some of them, are often looked for again."""

    def __init__(self) -> None:
        self._last: tuple[pa.Table, pa.Table] | None = None

    def of(self, keys: Keys, read: Callable[[], pa.Table]) -> pa.Table:
        """What ``read`` finds of the keys, among other rows; it is asked where they are not known."""
        if keys.table is None:
            return read()
        if self._last is not None:
            known, table = self._last
            if known.schema.equals(keys.table.schema) and pc.all(member_mask(keys.table, known, keys.columns)).as_py():
                return table
        table = read()
        self._last = (keys.table, table)
        return table


def keys_of(rows: Rows, columns: tuple[Id, ...]) -> Keys:
    """The distinct values that ``columns`` have in ``rows``."""
    local = rows.source
    table = None
    if isinstance(local, Local) and is_plain(local.schema.select(columns)):
        table = _distinct(local.table, columns)
    values = _values(table if table is not None else rows.local, columns)
    return Keys(columns, lambda: rows.frame.select(*columns).distinct(), rows.estimate, values, table=table)


def _distinct(table: pa.Table, columns: Sequence[Id]) -> pa.Table:
    if not columns:
        return table.select([])
    return table.select(list(columns)).group_by(list(columns), use_threads=False).aggregate([])


def _values(table: pa.Table | None, columns: Sequence[Id]) -> dict[Id, list[Any]]:
    """Sorted values of columns, of types that files have bounds for, and without NULL."""
    if table is None:
        return {}
    found = {id: sorted_values(table[id]) for id in columns if not table[id].null_count}
    return {id: values for id, values in found.items() if values is not None}


def null_safe(pairs: Mapping[str, str]) -> Column:
    """All pairs equal, NULL to NULL."""
    if not pairs:
        return F.lit(True)
    return fold(lambda a, b: a & b, (F.col(left).eqNullSafe(F.col(right)) for left, right in pairs.items()))
