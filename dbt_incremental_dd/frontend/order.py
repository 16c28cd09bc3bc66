"""ORDER BY with LIMIT and OFFSET: a top-k. Without them an order means nothing to a relation."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Block
from dbt_incremental_dd.frontend.resolve import Lookup, resolve, resolved_column
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Order, TopK

Key = tuple[exp.Ordered, exp.Expr]
"""An item of ORDER BY, and what it orders by, over ids."""


def limited(tree: exp.Expr, block: Block, look: Lookup) -> Node:
    """A set operation or a query in parentheses, limited as it says; ordinals count the block's columns."""
    if not is_limited(tree):
        return block.only
    values = [resolved_column(column.id) for column in block.columns]
    return top(tree, block.only, keys_of(tree, values, look), block.carried)


def top(tree: exp.Expr, plan: Node, keys: Sequence[Key], carried: tuple[Id, ...]) -> Node:
    """The plan's first rows, for each value of the outside, as LIMIT and OFFSET of ``tree`` say."""
    orders = tuple(order_of(item, Expr.of(value)) for item, value in keys)
    return TopK(plan, carried, orders, number(tree, "limit"), number(tree, "offset") or 0)


def order_of(item: exp.Ordered, expr: Expr) -> Order:
    """The direction of an ORDER BY item over that expression."""
    return Order(expr, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))


def keys_of(tree: exp.Expr, values: Sequence[exp.Expr], look: Lookup) -> list[Key]:
    """The items of ORDER BY; ``values`` are the select list's, which ordinals and ALL stand for."""
    if tree.args.get("sort") or tree.args.get("cluster") or tree.args.get("distribute"):
        return []
    order = tree.args.get("order")
    found: list[Key] = []
    for item in order.expressions if order is not None else ():
        target = item.this
        if isinstance(target, exp.Literal) and target.is_int:
            found.append((item, values[int(target.this) - 1].copy()))
        elif isinstance(target, exp.Var) and target.name.lower() == "all":
            if look(("all",)) is not None:
                raise UnsupportedSQL("ORDER BY ALL beside a column called all", "Give the column another name.")
            found += [(item, value.copy()) for value in values]
        else:
            found.append((item, resolve(target, look)))
    return found


def is_limited(tree: exp.Expr) -> bool:
    """Whether LIMIT or OFFSET leave out rows."""
    return number(tree, "limit") is not None or bool(number(tree, "offset"))


def number(tree: exp.Expr, clause: str) -> int | None:
    """The number of LIMIT or OFFSET; None where there is none."""
    node = tree.args.get(clause)
    if node is None:
        return None
    value = node.expression
    if isinstance(value, exp.Var) and value.name.lower() == "all":
        return None
    return _constant(value, clause)


def _constant(value: exp.Expr, clause: str) -> int:
    """The value of a sum or product of whole numbers."""
    if isinstance(value, exp.Paren):
        return _constant(value.this, clause)
    if isinstance(value, exp.Literal) and value.is_int:
        return int(value.this)
    if isinstance(value, exp.Add | exp.Sub | exp.Mul):
        left, right = _constant(value.left, clause), _constant(value.right, clause)
        return (
            left + right if isinstance(value, exp.Add) else left - right if isinstance(value, exp.Sub) else left * right
        )
    raise UnsupportedSQL(f"{clause.upper()} of an expression", "Write a number.")
