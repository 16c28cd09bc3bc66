"""Predicates on the driver: comparisons, logic, IN, LIKE, and expressions that are true or false."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce as fold

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dbt_incremental_dd.core.types import BOOLEAN, VOID
from dbt_incremental_dd.local import comparing
from dbt_incremental_dd.local.coercion import common_type, compared
from dbt_incremental_dd.local.evaluator import Evaluator
from dbt_incremental_dd.local.functions import patterns
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import repeated
from dbt_incremental_dd.logical.notes import noted

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_DISTINCT = (exp.NullSafeEQ, exp.NullSafeNEQ)
LIKE: dict[type[exp.Expr], Callable[..., Value]] = {exp.Like: patterns.like, exp.ILike: patterns.ilike}
LOGIC = (exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.In, exp.Escape, *LIKE, *_DISTINCT, *_COMPARISONS)
"""What is a predicate by its syntax."""


def truth(tree: exp.Expr, evaluator: Evaluator) -> pa.ChunkedArray:
    """True, false or NULL for each row. Raises NotExact."""
    constant = evaluator.constant(tree) if noted(tree, _has_no_column) else None
    if constant is not None:
        if constant.type not in (BOOLEAN, VOID):
            raise NotExact
        return repeated(Value(pc.cast(constant.data, pa.bool_()), BOOLEAN), evaluator.rows)
    found = _truth(tree, evaluator)
    return pc.invert(found) if tree.args.get("negate") else found


def _has_no_column(tree: exp.Expr) -> bool:
    return tree.find(exp.Column) is None


def _truth(tree: exp.Expr, evaluator: Evaluator) -> pa.ChunkedArray:
    match tree:
        case exp.Paren():
            return truth(tree.this, evaluator)
        case exp.And():
            return pc.and_kleene(truth(tree.left, evaluator), truth(tree.right, evaluator))
        case exp.Or():
            return pc.or_kleene(truth(tree.left, evaluator), truth(tree.right, evaluator))
        case exp.Not():
            return pc.invert(truth(tree.this, evaluator))
        case exp.Is():
            return _is(tree.this, tree.expression, evaluator)
        case exp.Between() if not tree.args.get("symmetric"):
            low = _compared(">=", tree.this, tree.args["low"], evaluator)
            return pc.and_kleene(low, _compared("<=", tree.this, tree.args["high"], evaluator))
        case exp.In() if tree.expressions and not tree.args.get("query"):
            return _among(tree.this, tree.expressions, evaluator)
        case exp.Like() | exp.ILike():
            return _like(tree, tree.expression, evaluator)
        case exp.Escape() if type(tree.this) in LIKE and not tree.this.args.get("negate"):
            return _like_with_escape(tree.this, tree.expression, evaluator)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            found = comparing.same(*_pair(tree.left, tree.right, evaluator))
            return found if isinstance(tree, exp.NullSafeEQ) else pc.invert(found)
    compare = _COMPARISONS.get(type(tree))
    if compare is not None:
        return _compared(compare, tree.this, tree.expression, evaluator)
    if type(tree) in LOGIC:
        raise NotExact
    flag = evaluator.value(tree)
    if flag.type != BOOLEAN:
        raise NotExact
    return repeated(flag, evaluator.rows)


def _is(item: exp.Expr, what: exp.Expr, evaluator: Evaluator) -> pa.ChunkedArray:
    if isinstance(what, exp.Null):
        return pc.is_null(repeated(evaluator.value(item), evaluator.rows))
    if not isinstance(what, exp.Boolean):
        raise NotExact
    return pc.fill_null(pc.equal(truth(item, evaluator), pa.scalar(bool(what.this))), False)


def _among(item: exp.Expr, values: list[exp.Expr], evaluator: Evaluator) -> pa.ChunkedArray:
    """IN compares in one type for all of the list."""
    found = [evaluator.value(tree) for tree in (item, *values)]
    type = common_type([value.type for value in found])
    if isinstance(found[0].data, pa.Scalar):
        raise NotExact
    wanted, *others = (compared(value, type) for value in found)
    return fold(pc.or_kleene, [comparing.equal(wanted, other) for other in others])


def _like(tree: exp.Like | exp.ILike, pattern: exp.Expr, evaluator: Evaluator) -> pa.ChunkedArray:
    """``x LIKE a``, ``x LIKE ANY (a, b)`` and ``x LIKE ALL (a, b)``."""
    value, like = evaluator.value(tree.this), LIKE[type(tree)]
    if not isinstance(pattern, exp.Any | exp.All):
        return like(value, evaluator.value(pattern)).data
    if tree.args.get("negate"):  # NOT of each, not of all
        raise NotExact
    several = pattern.this.expressions if isinstance(pattern.this, exp.Tuple) else [pattern.this.unnest()]
    found = [like(value, evaluator.value(one)).data for one in several]
    return fold(pc.or_kleene if isinstance(pattern, exp.Any) else pc.and_kleene, found)


def _like_with_escape(tree: exp.Expr, escape: exp.Expr, evaluator: Evaluator) -> pa.ChunkedArray:
    character = escape.name if isinstance(escape, exp.Literal) and escape.is_string else ""
    if len(character) != 1 or character in "%_":
        raise NotExact
    return LIKE[type(tree)](evaluator.value(tree.this), evaluator.value(tree.expression), character).data


def _compared(compare: str, left: exp.Expr, right: exp.Expr, evaluator: Evaluator) -> pa.ChunkedArray:
    return comparing.COMPARISONS[compare](*_pair(left, right, evaluator))


def _pair(left: exp.Expr, right: exp.Expr, evaluator: Evaluator) -> tuple[Value, Value]:
    """Two values, at least one of them a column, in a type in which they can be compared."""
    one, other = evaluator.value(left), evaluator.value(right)
    if isinstance(one.data, pa.Scalar) and isinstance(other.data, pa.Scalar):
        raise NotExact
    return comparing.comparable(one, other, evaluator.zone)
