"""Aggregates of DISTINCT values are aggregates over groups of equal values.

    Reduce(x, by k, [n: count(DISTINCT v) FILTER (WHERE p), s: sum(w)])
        ->    Join(Reduce(x, by k, [s: sum(w)]),
                   Reduce(Reduce(x, by k and v, [c: count_if(p)]), by k, [n: count(v) FILTER (WHERE c > 0)]))

So each value's copies are counted by accumulation, and a change costs the values that it touches instead of the group.
One inner Reduce serves all aggregates of the same values. The branches read one input (share). Requires nothing,
establishes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Aggregate, Distinct, Join, Map, Reduce

_OF_VALUES = ("count", "sum", "avg", "mean", "min", "max")


def split_distinct(plan: Node) -> Node:
    """The plan without DISTINCT in aggregates, where all of a group's are functions of the values alone."""
    node = plan.with_inputs(tuple(split_distinct(child) for child in plan.inputs))
    if not isinstance(node, Reduce):
        return node
    distinct = [a for a in node.aggregates if a.distinct]
    others = tuple(a for a in node.aggregates if not a.distinct)
    values = list(dict.fromkeys(a.args for a in distinct))
    if not distinct or not all(map(_is_of_values, distinct)):
        return node
    parts: list[Node] = [Reduce(node.input, node.keys, others, node.global_row)] if others else []
    for args in values:
        of_these = [a for a in distinct if a.args == args]
        suffix = f"_{of_these[0].id}" if parts else ""
        parts.append(_branch(node, args, of_these, {key: key + suffix for key in node.keys}))
    return _joined(node, parts)


def _is_of_values(aggregate: Aggregate) -> bool:
    known = aggregate.plain and aggregate.function in _OF_VALUES and bool(aggregate.args)
    return known and not aggregate.sql.uses_now


def _branch(node: Reduce, args: tuple[Expr, ...], aggregates: Sequence[Aggregate], keys: Mapping[Id, Id]) -> Reduce:
    """The aggregates of one list of values; ``keys`` are the branch's own names of the keys."""
    name = aggregates[0].id
    values = {f"{name}_v{i}": arg for i, arg in enumerate(args)}
    filters = list(dict.fromkeys(a.filter for a in aggregates if a.filter is not None))
    conditions = {f"{name}_p{i}": condition for i, condition in enumerate(filters)}
    copied = [(id, Expr.column(key)) for key, id in keys.items()]
    below = Map(node.input, (*copied, *values.items(), *conditions.items()))
    counts = tuple(_call(f"{id}_n", "count_if", (Expr.column(id),)) for id in conditions)
    groups = Reduce(below, (*keys.values(), *values), counts) if counts else Distinct(below)
    present = {f: Expr(f"{id}_n > 0") for f, id in zip(filters, conditions, strict=True)}
    columns = tuple(Expr.column(id) for id in values)
    made = (_call(a.id, a.function, columns, present[a.filter] if a.filter else None) for a in aggregates)
    return Reduce(groups, tuple(keys.values()), tuple(made), node.global_row)


def _call(id: Id, function: str, args: tuple[Expr, ...], condition: Expr | None = None) -> Aggregate:
    sql = f"{function}({', '.join(arg.sql for arg in args)})"
    whole = f"{sql} FILTER (WHERE {condition.sql})" if condition else sql
    return Aggregate(id, Expr(whole), function, args=args, distinct=False, filter=condition)


def _joined(node: Reduce, parts: Sequence[Node]) -> Node:
    """The parts' rows of each group side by side; every part has all groups, once."""
    keys = [part.columns[: len(node.keys)] for part in parts]
    on = tuple(
        Expr(f"{first} <=> {other}") for others in keys[1:] for first, other in zip(keys[0], others, strict=True)
    )
    whole = parts[0] if len(parts) == 1 else Join(tuple(parts), on)
    named = dict(zip(node.keys, keys[0], strict=True))
    return Map(whole, tuple((id, Expr.column(named.get(id, id))) for id in node.columns))
