"""Windows: the order among peers is fixed, so that a partition gives the same answer every time it is recomputed.

A function that counts or moves by rows (row_number, lag, ROWS frames, ...) sees the rows of one ORDER BY value in an
order of its own; here ties are broken by all of the input's columns. Functions of peers as a whole (rank, RANGE frames)
are left alone.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.logical.expr import Expr, keyword
from dbt_incremental_dd.logical.node import Id
from dbt_incremental_dd.logical.nodes import Order

_BY_ROWS = (
    "row_number",
    "ntile",
    "lag",
    "lead",
    "first",
    "last",
    "first_value",
    "last_value",
    "nth_value",
    "any_value",
)


def with_ties(function: Expr, ties: tuple[Id, ...]) -> Expr:
    """The OVER expression with its ORDER BY extended by ``ties`` where peers would be ordered at will."""
    tree = function.tree.copy()
    if not isinstance(tree, exp.Window) or not depends_on_peers(tree):
        return function
    order = tree.args.get("order") or exp.Order(expressions=[])
    present = {Expr.of(item.this).sql for item in order.expressions}
    for id in ties:
        if id not in present:
            order.append("expressions", exp.Ordered(this=exp.column(id), nulls_first=True))
    tree.set("order", order)
    return Expr.of(tree)


def breaks_ties(function: Expr) -> bool:
    """Whether the value depends on an order that the query leaves open."""
    tree = function.tree
    return isinstance(tree, exp.Window) and depends_on_peers(tree)


def depends_on_peers(window: exp.Window) -> bool:
    """Whether the value depends on the order of rows that ORDER BY holds equal."""
    spec = window.args.get("spec")
    if spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS":
        return not _whole_partition(spec)
    name = name_of(called(window))
    if spec is not None and name in ("first", "last", "first_value", "last_value", "nth_value", "any_value"):
        return False
    return name in _BY_ROWS and (window.args.get("order") is not None or name not in ("first", "last", "any_value"))


def called(window: exp.Expr) -> exp.Expr:
    """The window's call, below IGNORE NULLS and FILTER."""
    call: exp.Expr = window.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        call = call.this
    return call


def name_of(call: exp.Expr) -> str:
    """The call's name, in small letters; empty where it is not an ordinary one."""
    return str(call.this).lower() if isinstance(call, exp.Anonymous) else ""


def order_of(window: exp.Expr) -> tuple[Order, ...]:
    """The items of the window's ORDER BY, which it has."""
    return tuple(
        Order(Expr.of(item.this), bool(item.args.get("desc")), bool(item.args.get("nulls_first")))
        for item in window.args["order"].expressions
    )


def _whole_partition(spec: exp.WindowSpec) -> bool:
    ends = (keyword(spec.args.get("start")), keyword(spec.args.get("end")))
    return ends == ("UNBOUNDED", "UNBOUNDED")
