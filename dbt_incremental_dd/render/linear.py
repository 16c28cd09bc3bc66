"""Linear operators: their delta is themselves applied to their input's delta, and so are their contents.

One that reads ``dd_now()`` changes with time, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.logical.nodes import Filter, FlatMap, Map, Negate, Node, Union
from dbt_incremental_dd.render.keys import Keys
from dbt_incremental_dd.render.rows import Rows, filtered, negated, plus
from dbt_incremental_dd.render.temporal import crossed, source_of_change
from dbt_incremental_dd.trace.local import Local

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """The operator over its inputs' deltas, and over the former rows for which time alone makes another answer."""
    parts = [apply(node, i, r.delta(child), r.context.t1) for i, child in enumerate(node.inputs)]
    former = source_of_change(node, r)
    if former is not None and isinstance(node, Filter):
        parts.append(crossed(node, r, former))
    elif former is not None:
        parts += [apply(node, 0, former, r.context.t1), negated(apply(node, 0, former, r.context.t0))]
    return plus(parts)


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """The operator over its inputs' contents, the restriction pushed through it where that is the same."""
    parts = []
    for i, child in enumerate(node.inputs):
        below = pushed(node, i, keys)
        rows = apply(node, i, r.contents(child, new=new, keys=below), r.context.t1 if new else r.context.t0)
        complete = keys is None or keys.advisory or (below is not None and len(below.columns) == len(keys.columns))
        if rows is not None and keys is not None and not complete:
            rows = keys.restricted(rows)
        parts.append(rows)
    return plus(parts)


def apply(node: Node, position: int, rows: Rows | None, t: Time) -> Rows | None:
    """The operator's share of its output from input number ``position``, at the time ``t``."""
    if rows is None:
        return None
    if isinstance(node, Map):
        return _map(node, rows, t)
    if isinstance(node, Filter):
        return filtered(rows, node.predicate.at(t))
    if isinstance(node, FlatMap):
        return _flat_map(node, rows, t)
    if isinstance(node, Negate):
        return negated(rows)
    assert isinstance(node, Union)
    child = node.operands[position]
    return rows.renamed(list(zip(node.ids, child.columns, strict=True)))


def _map(node: Map, rows: Rows, t: Time) -> Rows:
    sources = [expr.as_column for _, expr in node.outputs]
    if None in sources:
        local = _map_locally(node, rows, t)
        if local is not None:
            return local
        return rows.mapped(rows.frame.select(*(F.expr(expr.at(t).sql).alias(id) for id, expr in node.outputs), DIFF))
    renamed = rows.renamed([(id, str(expr.as_column)) for id, expr in node.outputs])
    return replace(renamed, consolidated=rows.consolidated and set(node.input.columns) <= set(sources))


def _map_locally(node: Map, rows: Rows, t: Time) -> Rows | None:
    """The map on the driver; None where Spark has to evaluate it."""
    local = rows.source
    if not isinstance(local, Local):
        return None
    values = {id: evaluate(local, expr.at(t)) for id, expr in node.outputs}
    found = {id: value for id, value in values.items() if value is not None}
    if len(found) < len(values):
        return None
    table = pa.table({**{id: value.data for id, value in found.items()}, DIFF: local.table[DIFF]})
    schema = Schema((*(Column(id, value.type) for id, value in found.items()), DIFF_COLUMN))
    return replace(rows, source=Local(local.spark, table, schema), consolidated=False)


def _flat_map(node: FlatMap, rows: Rows, t: Time) -> Rows:
    """The generator in a select list of its own; its columns get the plan's ids."""
    generator = node.generator.at(t).sql
    call = _outer(generator) if node.outer else generator
    aliases = node.outputs[0] if len(node.outputs) == 1 else f"({', '.join(node.outputs)})"
    frame = rows.frame.selectExpr(*node.input.columns, f"{call} AS {aliases}", DIFF)
    return replace(rows.mapped(frame.select(*node.columns, DIFF)), estimate=rows.estimate * 4)


def _outer(generator: str) -> str:
    name, rest = generator.split("(", 1)
    return generator if name.strip().lower().endswith("_outer") else f"{name.strip()}_outer({rest}"


def pushed(node: Node, position: int, keys: Keys | None) -> Keys | None:
    """The restriction in terms of an input's columns: all of it, the part that can be pushed, or None."""
    if keys is None:
        return None
    if isinstance(node, Map):
        sources = {id: expr.as_column for id, expr in node.outputs}
        renames = {id: str(sources[id]) for id in keys.columns if sources[id]}
        if len(set(renames.values())) < len(renames):
            return None
    elif isinstance(node, Union):
        renames = dict(zip(node.ids, node.operands[position].columns, strict=True))
    else:
        renames = {id: id for id in node.inputs[position].columns}
    usable = [id for id in keys.columns if id in renames]
    if not usable:
        return None
    some = keys if len(usable) == len(keys.columns) else keys.only(usable)
    return some.renamed(renames)
