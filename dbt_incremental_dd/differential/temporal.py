"""Operators over single rows that change with time alone: which rows can be others at another time.

A filter like ``ts > dd_now() - INTERVAL 7 DAYS`` changes only for rows whose ``ts`` lies between the values that the
other side has at the two times (temporal filters, as in Materialize).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.literals import Verbatim
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import FlatMap
from dbt_incremental_dd.logical.now import bind_now

_COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ)
_MARGIN = "INTERVAL 4 DAYS"
"""More than calendars and daylight saving can move a time that an interval is added to and taken from again."""


def expressions(node: Node) -> tuple[Expr, ...]:
    """The expressions of an operator over single rows; of others none."""
    return node.expressions if node.by_rows else ()


def is_temporal(node: Node) -> bool:
    """Whether the operator's output changes with time alone."""
    return any(expr.uses_now for expr in expressions(node))


def moments(node: Node) -> tuple[Expr, ...]:
    """The largest parts of its expressions that depend on time and on nothing else. Of a generator, which is no value,
    its arguments."""
    trees = [expr.tree for expr in expressions(node) if expr.uses_now]
    if isinstance(node, FlatMap):
        trees = [argument for tree in trees for argument in tree.iter_expressions()]
    found = (part for tree in trees for part in _moments(tree))
    return tuple({part.sql: part for part in found}.values())


def _moments(tree: exp.Expr) -> Iterator[Expr]:
    if _has_now(tree):
        if tree.find(exp.Column) is None and isinstance(tree, exp.Condition):
            yield Expr.of(tree)
        else:
            for child in tree.iter_expressions():
                yield from _moments(child)


def _has_now(tree: exp.Expr) -> bool:
    return any(str(call.this).lower() == "dd_now" for call in tree.find_all(exp.Anonymous))


def crossing(predicate: Expr, t0: Time, t1: Time) -> Expr | None:
    """A condition that holds for every row for which ``predicate`` is another at ``t1`` than at ``t0``.

    None where no such condition is known. The moments compared with must not be NULL.
    """
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    if not _collect(predicate.tree, pairs):
        return None
    return Expr(" OR ".join(f"({_between(value, moment, t0, t1)})" for value, moment in pairs))


def _collect(tree: exp.Expr, pairs: list[tuple[exp.Expr, exp.Expr]]) -> bool:
    """Notes each comparison of a value of the row with a moment; False where time is read elsewhere."""
    if not _has_now(tree):
        return True
    if isinstance(tree, exp.Between):
        sides = [(tree.this, tree.args["low"]), (tree.this, tree.args["high"])]
    elif isinstance(tree, _COMPARISONS):
        sides = [(tree.left, tree.right)]
    elif isinstance(tree, exp.And | exp.Or | exp.Not | exp.Paren):
        return all(_collect(child, pairs) for child in tree.iter_expressions())
    else:
        return False
    for a, b in sides:
        if _has_now(a) and a.find(exp.Column) is None and not _has_now(b):
            pairs.append((b, a))
        elif _has_now(b) and b.find(exp.Column) is None and not _has_now(a):
            pairs.append((a, b))
        elif _has_now(a) or _has_now(b):
            return False
    return True


def _between(value: exp.Expr, moment: exp.Expr, t0: Time, t1: Time) -> str:
    """Whether the value lies between the moment at both times; for its column alone, too, which files are sorted by."""
    first, last = (bind_now(Expr.of(moment).sql, t) for t in (t0, t1))
    low, high = f"least({first}, {last})", f"greatest({first}, {last})"
    text = Expr.of(value).sql
    conditions = f"({text}) >= {low} AND ({text}) <= {high}"
    shifted = _column_and_shift(value)
    if shifted is None:
        return conditions
    column, back = shifted
    return f"{conditions} AND {column} >= {low} {back} - {_MARGIN} AND {column} <= {high} {back} + {_MARGIN}"


def _column_and_shift(value: exp.Expr) -> tuple[str, str] | None:
    """Of ``column + INTERVAL ...`` the column, and how to undo the shift."""
    while isinstance(value, exp.Paren):
        value = value.this
    if not isinstance(value, exp.Add | exp.Sub) or not isinstance(value.left, exp.Column):
        return None
    if not isinstance(value.right, Verbatim) or not value.right.is_interval:
        return None
    return Expr.of(value.left).sql, f"{'-' if isinstance(value, exp.Add) else '+'} {Expr.of(value.right).sql}"
