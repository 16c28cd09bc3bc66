"""A row number that is only compared with a constant is a top-k of each partition.

    Filter(Window(x, by k, [n: row_number() over (partition by k order by t)]), n <= 3)
        ->    Map(TopK(x, by k, order t, limit 3), [..., n: the row number again, if it is used])

Requires: filters stand where they were written (before push_filters). Establishes nothing.
The row number is kept as a Window over the winners, so its value stays what it was.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Filter, Map, Node, Order, TopK, Window


def top_k(plan: Node) -> Node:
    """The plan with row number filters as TopK."""
    node = plan.with_inputs(tuple(top_k(child) for child in plan.inputs))
    if not isinstance(node, Filter):
        return node
    path, window = _window_below(node.input)
    if window is None or len(window.functions) != 1:
        return node
    id, function = window.functions[0]
    order = _row_number_order(function)
    limit = _limit(node.predicate, _name_above(path, id))
    if order is None or limit is None:
        return node
    winners: Node = Window(TopK(window.input, window.keys, order, limit), window.keys, window.functions)
    for step in reversed(path):
        winners = step.with_inputs((winners,))
    return Filter(winners, node.predicate)


def _window_below(node: Node) -> tuple[list[Node], Window | None]:
    """The Window under any number of Maps."""
    path: list[Node] = []
    while isinstance(node, Map):
        path.append(node)
        node = node.input
    return path, node if isinstance(node, Window) else None


def _name_above(path: list[Node], id: str) -> str | None:
    """The id that a column has on top of a path of Maps."""
    for node in reversed(path):
        assert isinstance(node, Map)
        id = next((own for own, expr in node.outputs if expr.as_column == id), "")
    return id or None


def _row_number_order(function: Expr) -> tuple[Order, ...] | None:
    tree = function.tree
    if not isinstance(tree, exp.Window) or not isinstance(tree.this, exp.Anonymous):
        return None
    if str(tree.this.this).lower() != "row_number" or tree.args.get("order") is None:
        return None
    return tuple(
        Order(Expr.of(item.this), bool(item.args.get("desc")), bool(item.args.get("nulls_first")))
        for item in tree.args["order"].expressions
    )


def _limit(predicate: Expr, id: str | None) -> int | None:
    """k, where the predicate is ``n <= k``, ``n < k + 1`` or ``n = 1``."""
    tree = predicate.tree
    if id is None or not isinstance(tree, exp.LTE | exp.LT | exp.EQ):
        return None
    column, bound = tree.left, tree.right
    if (
        not isinstance(column, exp.Column)
        or column.name != id
        or not isinstance(bound, exp.Literal)
        or not bound.is_int
    ):
        return None
    number = int(bound.this)
    if isinstance(tree, exp.EQ):
        return 1 if number == 1 else None
    return max(number - (1 if isinstance(tree, exp.LT) else 0), 0)
