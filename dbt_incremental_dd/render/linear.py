"""Linear operators: their delta is themselves applied to their input's delta, and so are their contents.

One that reads ``dd_now()`` changes with time, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.logical.nodes import Filter, FlatMap, Map, Negate, Union
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation, negated, plus
from dbt_incremental_dd.render.temporal import crossed, source_of_change

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

Linear = Map | Filter | FlatMap | Union | Negate


def delta(node: Linear, run: OperatorRun) -> Relation | None:
    """The operator over its inputs' deltas, and over the former rows for which time alone makes another answer."""
    parts = [apply(node, i, run.delta(child), run.context.t1) for i, child in enumerate(node.inputs)]
    former = source_of_change(node, run)
    if former is not None and isinstance(node, Filter):
        parts.append(crossed(node, run, former))
    elif former is not None:
        parts += [apply(node, 0, former, run.context.t1), negated(apply(node, 0, former, run.context.t0))]
    return plus(parts)


def contents(node: Linear, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The operator over its inputs' contents, the restriction pushed through it where that is the same."""
    parts = []
    for i, child in enumerate(node.inputs):
        below = pushed(node, i, keys)
        rows = apply(node, i, run.contents(child, new=new, keys=below), run.context.t1 if new else run.context.t0)
        complete = keys is None or keys.advisory or (below is not None and len(below.columns) == len(keys.columns))
        if rows is not None and keys is not None and not complete:
            rows = keys.restricted(rows)
        parts.append(rows)
    return plus(parts)


def apply(node: Linear, position: int, rows: Relation | None, t: Time) -> Relation | None:
    """The operator's share of its output from input number ``position``, at the time ``t``."""
    if rows is None:
        return None
    match node:
        case Map():
            return rows.map([(id, expr.at(t)) for id, expr in node.outputs])
        case Filter():
            return rows.filter(node.predicate.at(t))
        case FlatMap():
            generated = rows.generate(node.generator.at(t).sql, node.outputs, outer=node.outer)
            return replace(generated.columns(node.columns), estimate=rows.estimate * _GENERATED)
        case Negate():
            return rows.negate()
        case Union():
            return rows.select(list(zip(node.ids, node.operands[position].columns, strict=True)))


_GENERATED = 4
"""Rows that a generator is taken to make of each."""


def pushed(node: Linear, position: int, keys: Keys | None) -> Keys | None:
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
