"""Grouped aggregation of a delta that is on the driver: its groups are known before it is summed, so that one query
over it and the groups' old sums gives both the sums' change and the change of the output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.render.keys import keys_of
from dbt_incremental_dd.render.outputs import FIRST, NEW, OLD, SECOND, compared, sum_types
from dbt_incremental_dd.render.rows import Rows
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import is_plain
from dbt_incremental_dd.trace.local import Local

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun


def reduce_at_once(node: Accumulate, r: OperatorRun, source: Rows) -> tuple[Rows, Rows] | None:
    """The sums' change and the outputs' difference; None where that is not known to be few rows."""
    if r.context.from_nothing or node.extremes or source.local is None:
        return None
    if not is_plain(source.schema.select(node.keys)):
        return None
    before = r.context.inner.of(node.sums).contents(new=False, keys=keys_of(source, node.keys) if node.keys else None)
    if before is not None and before.local is None:
        return None
    frame = r.context.spark.sql(_query(node, r, source, before))
    found = r.context.localized(Rows(frame, source.estimate), limits.FOUND_ROWS).source
    if not isinstance(found, Local):
        return None
    names = (*node.keys, *sum_types(node))
    change = found.table.select(list(names))
    sums = Rows(Local(found.spark, change, found.schema.select(names)), change.num_rows, consolidated=True)
    return sums, _split(node, found)


def _query(node: Accumulate, r: OperatorRun, source: Rows, before: Rows | None) -> str:
    """``compared``, over the delta and the old sums grouped together."""
    types = sum_types(node)
    given = [*source.schema.names]
    relation = f"(SELECT {_list([*given, *_nulls(map(_old, types))])} FROM {r.context.view(source.frame)}"
    if before is not None:
        columns = [name if name in node.keys else f"NULL AS {name}" for name in given]
        olds = [f"{name} AS {_old(name)}" for name in types]
        relation += f" UNION ALL SELECT {_list([*columns, *olds])} FROM {r.context.view(before.frame)}"
    deltas = {DIFF: f"sum({DIFF})", **{a.name: a.delta for a in node.accumulators}}
    sums = [f"CAST(coalesce({deltas[name]}, 0) AS {dtype}) AS {name}" for name, dtype in types.items()]
    olds = [f"CAST(coalesce(any_value({_old(n)}, true), 0) AS {dtype}) AS {_old(n)}" for n, dtype in types.items()]
    grouped = f"(SELECT {_list([*node.keys, *sums, *olds])} FROM {relation})"
    grouped += f" GROUP BY {_list(node.keys)})" if node.keys else ")"
    touched = "" if source.positive else f" WHERE {' OR '.join(f'{name} <> 0' for name in types)}"
    return compared(node, grouped + touched, from_nothing=False)


def _old(name: str) -> str:
    return OLD + name


def _nulls(names: Iterable[str]) -> list[str]:
    return [f"NULL AS {name}" for name in names]


def _list(items: Iterable[str]) -> str:
    return ", ".join(items)


def _split(node: Accumulate, found: Local) -> Rows:
    """The rows of ``compared`` as updates."""
    types = {column.name: column for column in found.schema}
    table, parts = found.table, []
    for side, diff in ((NEW, FIRST), (OLD, SECOND)):
        kept = table.filter(pc.not_equal(table[diff], 0))
        values = {id: kept[side + id] for id, _ in node.outputs}
        parts.append(pa.table({**{id: kept[id] for id in node.keys}, **values, DIFF: kept[diff]}))
    columns = [*(types[id] for id in node.keys), *(Column(id, types[NEW + id].type) for id, _ in node.outputs)]
    answer = pa.concat_tables(parts)
    source = Local(found.spark, answer, Schema((*columns, DIFF_COLUMN)))
    return Rows(source, answer.num_rows, consolidated=True)
