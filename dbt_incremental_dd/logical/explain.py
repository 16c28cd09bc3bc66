"""A plan as an indented tree of text, one operator a line."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import (
    Aggregate,
    Constant,
    Fallback,
    Filter,
    FlatMap,
    Get,
    Join,
    Map,
    OuterJoin,
    Reduce,
    SemiJoin,
    TopK,
    Union,
    Window,
)


def explain(plan: Node) -> str:
    """The tree of ``plan``; inputs stand below their operator, indented."""
    return "\n".join(_lines(plan, ""))


def _lines(node: Node, indent: str) -> Iterable[str]:
    yield f"{indent}{describe(node)}"
    for child in node.inputs:
        yield from _lines(child, f"{indent}  ")


def describe(node: Node) -> str:
    """One operator, without its inputs."""
    match node:
        case Get():
            return f"Get {node.collection} [{', '.join(f'{id}: {column}' for id, column in node.outputs)}]"
        case Constant():
            return f"Constant [{', '.join(node.ids)}]: {node.sql}"
        case Map():
            return f"Map [{_named(node.outputs)}]"
        case Filter():
            return f"Filter {node.predicate.sql}"
        case FlatMap():
            return f"FlatMap [{', '.join(node.outputs)}: {node.generator.sql}]{' outer' if node.outer else ''}"
        case Join() | OuterJoin() | SemiJoin():
            return f"{_kind(node)} on {' AND '.join(p.sql for p in node.on) or 'true'}"
        case Reduce():
            aggregates = ", ".join(map(_aggregate, node.aggregates))
            return f"Reduce by [{', '.join(node.keys)}] [{aggregates}]{' one row' if node.global_row else ''}"
        case TopK():
            order = ", ".join(item.sql for item in node.order)
            skipped = f" offset {node.offset}" if node.offset else ""
            return f"TopK by [{', '.join(node.keys)}] order [{order}] limit {node.limit}{skipped}"
        case Window():
            return f"Window by [{', '.join(node.keys)}] [{_named(node.functions)}]"
        case Union():
            return f"Union [{', '.join(node.ids)}]"
        case Fallback():
            temporal = " temporal" if node.temporal else ""
            return f"Fallback [{', '.join(node.ids)}] ({node.reason}){temporal}: {node.sql}"
    return " ".join([type(node).__name__, *(f"{name}={value}" for name, value in node.settings)])


def _named(outputs: Iterable[tuple[str, Expr]]) -> str:
    return ", ".join(id if expr.sql == id else f"{id}: {expr.sql}" for id, expr in outputs)


def _kind(node: Join | OuterJoin | SemiJoin) -> str:
    if isinstance(node, OuterJoin):
        return f"{node.kind.capitalize()}Join"
    if isinstance(node, SemiJoin):
        return "AntiJoin" if node.anti else "SemiJoin"
    return "Join"


def _aggregate(aggregate: Aggregate) -> str:
    return f"{aggregate.id}: {aggregate.sql.sql}"
