"""Rows on the driver in an order: sorted by Arrow where it orders values as Spark does."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BINARY, BOOLEAN, FLOATS, LONG
from dbt_incremental_dd.local.floats import ranks
from dbt_incremental_dd.local.nested import has_order, is_nested, numbers
from dbt_incremental_dd.local.table import Table, group_numbers, require_comparable
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import row_numbers
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.trace.arrow import is_ordered

_GROUP = "dd_group"
_PLACE = "dd_place"
_SUM = "dd_sum"
_SORTED = (BOOLEAN, BINARY, *FLOATS)
"""Sorted here as Spark does: bytes by Arrow, the others by their ranks; as nested values by their numbers."""


def in_order(table: Table, order: Sequence[Order]) -> Table:
    """The rows sorted. Raises NotExact for an order that is not one of plain columns."""
    _require_ordered(table, order)
    return table.take(_sorted_indices(table.arrow, pa.repeat(0, table.num_rows), order)) if order else table


def running_sums(
    table: Table, keys: Sequence[str], order: Sequence[Order], sums: Sequence[tuple[str, Value, bool]]
) -> Table:
    """The rows sorted, with sums (name, values, whether a row's own counts) beside them. Raises NotExact for an order
    that is not one of plain columns."""
    _require_ordered(table, order)
    require_comparable(table, keys)
    numbers = group_numbers(table.arrow, keys)
    if table.num_rows and pc.max(numbers).as_py() == table.num_rows - 1:  # each is a group of its own
        own = [(name, pc.fill_null(value.data.cast(pa.int64()), 0), through) for name, value, through in sums]
        for name, values, through in own:
            table = table.with_column(name, values if through else pc.multiply(values, 0), LONG)
        return table
    indices = _sorted_indices(table.arrow, numbers, order)
    found, numbers = table.take(indices), numbers.take(indices)
    for name, value, through in sums:
        values = value.data.take(indices)
        found = found.with_column(name, _running(values, numbers, through=through), LONG)
    return found


def _require_ordered(table: Table, order: Sequence[Order]) -> None:
    names = [item.expr.as_column for item in order]
    columns = tuple(name for name in names if name is not None and name in table.schema.names)
    if len(columns) < len(names) or not all(map(_is_sorted, table.schema.select(columns))):
        raise NotExact("an order of other than plain columns")


def _is_sorted(column: Column) -> bool:
    return column.type in _SORTED or has_order(column.type) or is_ordered(Schema((column,)))


def _running(values: pa.ChunkedArray, groups: pa.Array, *, through: bool) -> pa.ChunkedArray:
    """``groups``: numbers in the order of the rows, each group's rows together."""
    values = pc.fill_null(pc.cast(values, pa.int64()), 0)
    so_far = pc.subtract(pc.cumulative_sum_checked(values), values)
    table = pa.table({_GROUP: groups, _SUM: so_far, _PLACE: row_numbers(len(groups))})
    firsts = table.group_by([_GROUP], use_threads=False).aggregate([(_PLACE, "min")])
    start = so_far.take(firsts[f"{_PLACE}_min"])
    places = pc.index_in(groups, value_set=firsts[_GROUP].combine_chunks())
    before = pc.subtract(so_far, start.take(places))
    return pc.add(before, values) if through else before


def _sorted_indices(table: pa.Table, groups: pa.Array, order: Sequence[Order]) -> pa.Array:
    """By group, then by the items, NULLs of each at the side where it has them: Arrow itself puts them last."""
    keys = [(_GROUP, "ascending")]
    wide = table.append_column(_GROUP, groups)
    for number, item in enumerate(order):
        column = str(item.expr.as_column)
        if item.nulls_first and table[column].null_count:
            wide = wide.append_column(f"dd_null_{number}", pc.is_null(table[column]).cast(pa.int8()))
            keys.append((f"dd_null_{number}", "descending"))
        values = table[column]
        ranked = _ranked(values)
        if ranked is not values:
            column = f"dd_rank_{number}"
            wide = wide.append_column(column, ranked)
        keys.append((column, "descending" if item.descending else "ascending"))
    return pc.sort_indices(wide, sort_keys=keys)


def _ranked(values: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Values that Arrow sorts as Spark does these."""
    if is_nested(values):
        return numbers(values)[0]
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else ranks(values)
