"""A row number that is only compared with a constant is a top-k of each partition.

    Filter(Window(x, by k, [n: row_number() over (partition by k order by t)]), n <= 3)
        ->    Window(TopK(x, by k, order t, limit 3), by k, [n: row_number() over ...])

Requires: filters stand where they were written (before push_filters). Establishes nothing, but keeps an
operator that several read one.
The row number is counted again over the winners, which gives them the numbers that they had; where nobody reads it,
prune_columns leaves it out.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import bottom_up
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Filter, Map, Order, TopK, Window


def top_k(plan: Node) -> Node:
    """The plan with row number filters as TopK."""
    return bottom_up(plan, _top_k)


def _top_k(node: Node) -> Node:
    if not isinstance(node, Filter):
        return node
    path, window = _window_below(node.input)
    if window is None:
        return node
    for id, function in window.functions:
        order, limit = _row_number_order(function), _limit(node.predicate, _name_above(path, id))
        if order is None or limit is None:
            continue
        most, exact = limit
        winners = _winners(window, id, order, most)
        for step in reversed(path):
            winners = step.with_inputs((winners,))
        return winners if exact else Filter(winners, node.predicate)
    return node


def _winners(window: Window, id: Id, order: tuple[Order, ...], limit: int) -> Node:
    """The window's first rows; its other functions are computed before rows are left out."""
    others = tuple(function for function in window.functions if function[0] != id)
    below = Window(window.input, window.keys, others) if others else window.input
    top = TopK(below, window.keys, order, limit)
    numbered = Window(top, window.keys, tuple(function for function in window.functions if function[0] == id))
    if numbered.columns == window.columns:
        return numbered
    return Map(numbered, tuple((column, Expr.column(column)) for column in window.columns))


def _window_below(node: Node) -> tuple[list[Node], Window | None]:
    """The Window under Maps and Filters, whose order does not matter to the rows that a further filter keeps."""
    path: list[Node] = []
    while isinstance(node, Map | Filter):
        path.append(node)
        node = node.input
    return path, node if isinstance(node, Window) else None


def _name_above(path: list[Node], id: Id) -> Id | None:
    """The id that a column has on top of a path."""
    for node in reversed(path):
        if isinstance(node, Map):
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


def _limit(predicate: Expr, id: Id | None) -> tuple[int, bool] | None:
    """The greatest number that the predicate lets through, and whether it lets through all up to it."""
    tree = predicate.tree
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Between) and _is(tree.this, id):
        low, high = _number(tree.args["low"]), _number(tree.args["high"])
        return None if low is None or high is None or tree.args.get("symmetric") else (max(high, 0), low <= 1)
    if not isinstance(tree, exp.LTE | exp.LT | exp.GTE | exp.GT | exp.EQ):
        return None
    turned = isinstance(tree, exp.GTE | exp.GT)
    column, bound = (tree.right, tree.left) if turned else (tree.left, tree.right)
    if isinstance(tree, exp.EQ) and not _is(column, id):
        column, bound = bound, column
    number = _number(bound)
    if number is None or not _is(column, id):
        return None
    if isinstance(tree, exp.EQ):
        return max(number, 0), number <= 1
    return max(number - (1 if isinstance(tree, exp.LT | exp.GT) else 0), 0), True


def _is(tree: exp.Expr, id: Id | None) -> bool:
    return isinstance(tree, exp.Column) and len(tree.parts) == 1 and tree.name == id


def _number(tree: exp.Expr) -> int | None:
    return int(tree.this) if isinstance(tree, exp.Literal) and tree.is_int else None
