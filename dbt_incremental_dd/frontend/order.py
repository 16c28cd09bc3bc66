"""ORDER BY with LIMIT and OFFSET: a top-k. Without them an order means nothing to a relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.resolve import resolve
from dbt_incremental_dd.frontend.scope import Named, Scope
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Node, Order, TopK


def lower_order(
    tree: exp.Expression,
    plan: Node,
    columns: Sequence[Named],
    scope: Scope,
    aliases: Mapping[str, exp.Expression],
) -> Node:
    """The plan limited as the query says; ``columns`` are what ordinals count."""
    limit, offset = number(tree, "limit"), number(tree, "offset") or 0
    if limit is None and not offset:
        return plan
    return TopK(plan, (), orders(tree, columns, scope, aliases), limit, offset)


def orders(
    tree: exp.Expression, columns: Sequence[Named], scope: Scope, aliases: Mapping[str, exp.Expression]
) -> tuple[Order, ...]:
    """The items of ORDER BY over ids."""
    items = []
    for ordered in ordered_items(tree):
        target = ordered.this
        if isinstance(target, exp.Literal) and target.is_int:
            resolved: exp.Expression = exp.column(columns[int(target.this) - 1].id)
        elif isinstance(target, exp.Column) and target.name.lower() == "all" and scope.find(("all",)) is None:
            items += [
                Order(Expr.column(c.id), bool(ordered.args.get("desc")), not ordered.args.get("desc")) for c in columns
            ]
            continue
        else:
            resolved = resolve(target, scope, aliases)
        descending = bool(ordered.args.get("desc"))
        items.append(Order(Expr.of(resolved), descending, bool(ordered.args.get("nulls_first"))))
    return tuple(items)


def ordered_items(tree: exp.Expression) -> list[exp.Ordered]:
    """The items of the query's own ORDER BY."""
    if tree.args.get("sort") or tree.args.get("cluster") or tree.args.get("distribute"):
        return []
    order = tree.args.get("order")
    return list(order.expressions) if order is not None else []


def number(tree: exp.Expression, clause: str) -> int | None:
    """The number of LIMIT or OFFSET; None where there is none."""
    node = tree.args.get(clause)
    if node is None:
        return None
    value = node.expression if isinstance(node, exp.Limit | exp.Offset) else None
    if isinstance(value, exp.Column) and value.name.lower() == "all":
        return None
    if not isinstance(value, exp.Literal) or not value.is_int:
        raise UnsupportedSQL(f"{clause.upper()} of an expression")
    return int(value.this)
