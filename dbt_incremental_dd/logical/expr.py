"""A scalar expression: Spark SQL over the column ids of the node below it.

Ids are unique in a plan (``c12``), so an expression means the same wherever its columns are present.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import sqlglot
from sqlglot import exp

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.logical.dialect import VerbatimSpark
from dbt_incremental_dd.logical.now import bind_now, uses_now


@dataclass(frozen=True)
class Expr:
    """``sql`` names columns by their ids only, unqualified and without quotes."""

    sql: str

    @staticmethod
    def column(id: str) -> Expr:
        """The value of one column."""
        return Expr(id)

    @staticmethod
    def of(tree: exp.Expr) -> Expr:
        """The expression of a syntax tree whose columns are ids already."""
        return Expr(tree.sql(dialect=VerbatimSpark, comments=False, normalize_functions=False))

    def __deepcopy__(self, memo: object) -> Expr:
        """Itself: it never changes."""
        return self

    @cached_property
    def tree(self) -> exp.Expr:
        """The syntax tree. Shared: copy it before changing it."""
        return _parsed(self.sql)

    @cached_property
    def refs(self) -> frozenset[str]:
        """Ids of the columns it reads. A lambda's own variables are not among them."""
        return frozenset(_id(column) for column in _columns(self.tree))

    @cached_property
    def tree_refs(self) -> tuple[str, ...]:
        """The same, as often as each is read; one inside a lambda counts twice, for it is read for every element."""
        columns = _columns(self.tree)
        return tuple(_id(c) for c in columns) + tuple(_id(c) for c in columns if c.find_ancestor(exp.Lambda))

    @cached_property
    def uses_now(self) -> bool:
        """Whether its value changes with time."""
        return uses_now(self.sql)

    def at(self, t: Time) -> Expr:
        """The expression at one time."""
        return Expr(bind_now(self.sql, t)) if self.uses_now else self

    @cached_property
    def as_column(self) -> str | None:
        """The id, where the expression is nothing but a column."""
        tree = self.tree.unnest()
        return tree.name if isinstance(tree, exp.Column) and len(tree.parts) == 1 else None

    def substitute(self, by: Mapping[str, Expr]) -> Expr:
        """The expression with columns replaced by expressions."""
        read = tuple((id, by[id]) for id in sorted(self.refs) if id in by)
        return _substituted(self, read) if read else self

    def conjuncts(self) -> tuple[Expr, ...]:
        """The operands of a top-level AND chain. What all branches of an OR have in common stands before the OR."""
        return _conjuncts(self)

    def equality_sides(self) -> tuple[Expr, Expr, bool] | None:
        """Both sides of ``a = b`` (False) or ``a <=> b`` (True, NULLs are equal); None for anything else."""
        return _equality_sides(self)


# To parse or print an expression takes longer than to evaluate it for a few rows.


_PLAIN_ID = re.compile(r"c\d+")
"""As plans number their columns."""


@lru_cache(maxsize=4096)
def _parsed(sql: str) -> exp.Expr:
    if _PLAIN_ID.fullmatch(sql):
        return exp.Column(this=exp.Identifier(this=sql, quoted=False))
    return sqlglot.parse_one(sql, dialect=VerbatimSpark)


@lru_cache(maxsize=4096)
def _substituted(expr: Expr, by: tuple[tuple[str, Expr], ...]) -> Expr:
    values = dict(by)
    tree, is_parsed_alike = expr.tree.copy(), True
    for column in list(_columns(tree)):
        if _id(column) not in values:
            continue
        value: exp.Expr = values[_id(column)].tree.copy()
        if not isinstance(value, exp.Column):
            value = exp.paren(value, copy=False)
        for field in column.parts[1:]:
            value, is_parsed_alike = exp.Dot(this=value, expression=field.copy()), False
        if column is tree:
            tree = value
        else:
            column.replace(value)
    made = Expr.of(tree)
    if is_parsed_alike:
        made.__dict__["tree"] = tree  # to parse the text would take longer
    return made


@lru_cache(maxsize=4096)
def _conjuncts(expr: Expr) -> tuple[Expr, ...]:
    tree = expr.tree
    if isinstance(tree, exp.Paren):
        return Expr.of(tree.this).conjuncts()
    if isinstance(tree, exp.And):
        return Expr.of(tree.left).conjuncts() + Expr.of(tree.right).conjuncts()
    return _factored(expr) if isinstance(tree, exp.Or) else (expr,)


def _factored(expr: Expr) -> tuple[Expr, ...]:
    """``(a AND b) OR (a AND c)`` as ``a`` and ``b OR c``: the same for true, false and unknown."""
    branches = [Expr.of(branch).conjuncts() for branch in expr.tree.flatten()]
    common = tuple(c for c in branches[0] if all(c in branch for branch in branches[1:]))
    rest = [[c.sql for c in branch if c not in common] for branch in branches]
    if not common or not all(rest):
        return common or (expr,)
    either = " OR ".join("(" + " AND ".join(f"({sql})" for sql in branch) + ")" for branch in rest)
    return (*common, Expr(either))


@lru_cache(maxsize=4096)
def _equality_sides(expr: Expr) -> tuple[Expr, Expr, bool] | None:
    tree = expr.tree.unnest()
    if isinstance(tree, exp.EQ | exp.NullSafeEQ):
        return Expr.of(tree.left), Expr.of(tree.right), isinstance(tree, exp.NullSafeEQ)
    return None


def references(exprs: Iterable[Expr]) -> frozenset[str]:
    """Ids of the columns that any of them reads."""
    return frozenset(ref for expr in exprs for ref in expr.refs)


def _id(column: exp.Column) -> str:
    """The column's id; further parts are fields of a struct (``c1.f``)."""
    return str(column.parts[0].name)


def _columns(tree: exp.Expr) -> list[exp.Column]:
    """Column references that are not a lambda's own variables."""
    return [column for column in tree.find_all(exp.Column) if not bound_by_lambda(column)]


def keyword(value: object) -> str:
    """A keyword where an expression may stand too, as of a frame's ends; empty for an expression."""
    return value.upper() if isinstance(value, str) else ""


def bound_by_lambda(column: exp.Column) -> bool:
    scope = column.find_ancestor(exp.Lambda)
    while scope is not None:
        if any(parameter.name.lower() == _id(column).lower() for parameter in scope.expressions):
            return True
        scope = scope.find_ancestor(exp.Lambda)
    return False
