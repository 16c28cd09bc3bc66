"""The first rows of everything, or of groups, on the driver: sorted by Arrow where it orders values as Spark does."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import DIFF, Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.differential.groups import TopGroups
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.render.rows import Rows
from dbt_incremental_dd.trace.arrow import is_ordered, is_plain
from dbt_incremental_dd.trace.local import Local, group_numbers

BEFORE = "dd_before"
"""How many rows come before a row and its copies."""
_WAS = "dd_was_kept"
_GROUP = "dd_group"


def answer_locally(node: KeptTop, kept: Rows) -> Rows | None:
    """The rows from ``offset`` on, at most ``limit``; None where Spark has to order them."""
    order = _whole_order(node, kept)
    if order is None or not isinstance(kept.source, Local):
        return None
    table = _sorted(kept.source.table, order)
    end = pc.cumulative_sum(table[DIFF])
    first = pc.max_element_wise(pc.subtract(end, table[DIFF]), node.offset)
    count = pc.subtract(pc.min_element_wise(end, node.offset + node.limit), first)
    table = table.set_column(table.column_names.index(DIFF), DIFF, count).filter(pc.greater(count, 0))
    return Rows(kept.source.with_table(table), table.num_rows, positive=True, consolidated=kept.consolidated)


def groups_locally(node: TopGroups, rows: Rows) -> Rows | None:
    """Each group's rows from ``offset`` on, at most ``limit``, of a multiset; None where Spark has to order them."""
    order = _whole_order(node, rows)
    local = rows.source
    if order is None or not isinstance(local, Local) or not is_plain(local.schema.select(node.keys)):
        return None
    table = local.table.append_column(_GROUP, group_numbers(local.table, node.keys))
    table = _sorted(table, [Order(Expr.column(_GROUP), descending=False, nulls_first=True), *order])
    before = pc.subtract(pc.cumulative_sum(table[DIFF]), table[DIFF])
    groups = pa.table({_GROUP: table[_GROUP], BEFORE: before}).group_by([_GROUP], use_threads=False)
    before = pc.subtract(before, groups.aggregate([(BEFORE, "min")])[f"{BEFORE}_min"].take(table[_GROUP]))
    end = pc.add(before, table[DIFF])
    last = end if node.limit is None else pc.min_element_wise(end, node.offset + node.limit)
    count = pc.subtract(last, pc.max_element_wise(before, node.offset))
    table = table.set_column(table.column_names.index(DIFF), DIFF, count)
    table = table.filter(pc.greater(count, 0)).select(local.table.column_names)
    return Rows(local.with_table(table), table.num_rows, positive=True, consolidated=rows.consolidated)


def updated_locally(node: KeptTop, change: Rows, old: Rows | None, complete: bool) -> Local | None:
    """The kept rows with the change, and ``dd_before``; only those up to the last kept one, unless ``complete``.

    None where Spark has to order them.
    """
    order = _whole_order(node, change)
    parts = [(change, 0), *([(old, 1)] if old is not None else [])]
    if order is None or not all(isinstance(rows.source, Local) for rows, _ in parts):
        return None
    assert isinstance(change.source, Local)
    columns = [*node.columns, DIFF]
    marked = [_marked(rows.local.select(columns), was) for rows, was in parts if rows.local is not None]
    summed = pa.concat_tables(marked).group_by(list(node.columns), use_threads=False)
    table = summed.aggregate([(DIFF, "sum"), (_WAS, "max")]).rename_columns([*columns, _WAS])
    table = _sorted(table, order)
    if not complete:
        table = table.slice(0, _last(table) + 1)
    before = pc.subtract(pc.cumulative_sum(table[DIFF]), table[DIFF])
    table = table.drop_columns([_WAS]).append_column(BEFORE, before)
    table = table.filter(pc.greater(table[DIFF], 0))
    schema = Schema((*change.source.schema.select(tuple(columns)), Column(BEFORE, LONG)))
    return Local(change.source.spark, table, schema)


def _marked(table: pa.Table, was: int) -> pa.Table:
    return table.append_column(_WAS, pa.array([was] * table.num_rows, pa.int8()))


def _last(table: pa.Table) -> int:
    """The position of the last row that was kept; -1 where none is left."""
    positions = pa.array(range(table.num_rows), pa.int64())
    last = pc.max(positions.filter(pc.equal(table[_WAS], 1).combine_chunks())).as_py()
    return -1 if last is None else int(last)


def _whole_order(node: KeptTop | TopGroups, rows: Rows) -> list[Order] | None:
    """The whole order, ties included; None where it is not one of plain columns."""
    types = {column.name: column.type for column in rows.schema}
    if not is_ordered(rows.schema.select(node.columns)):
        return None
    items = [*node.order, *(Order(Expr.column(id), descending=False, nulls_first=True) for id in node.ties)]
    return items if items and all(item.expr.as_column in types for item in items) else None


def _sorted(table: pa.Table, order: list[Order]) -> pa.Table:
    """Sorted by the items, NULLs of each at the side where it has them."""
    keys = []
    wide = table
    for number, item in enumerate(order):
        column = str(item.expr.as_column)
        wide = wide.append_column(f"dd_null_{number}", pc.is_null(table[column]).cast(pa.int8()))
        keys.append((f"dd_null_{number}", "descending" if item.nulls_first else "ascending"))
        keys.append((column, "descending" if item.descending else "ascending"))
    return table.take(pc.sort_indices(wide, sort_keys=keys))
