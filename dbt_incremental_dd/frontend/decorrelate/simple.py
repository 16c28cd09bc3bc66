"""Correlated queries that need no domain: FROM and WHERE alone, tied by the conjuncts that read the outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeGuard

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.aggregate import aggregation, find_aggregates, itself, key_columns
from dbt_incremental_dd.frontend.block import Environment, conjuncts, has_subquery
from dbt_incremental_dd.frontend.decorrelate.dependent import Computed, Conditions, Dependent, Tied
from dbt_incremental_dd.frontend.order import is_limited, number
from dbt_incremental_dd.frontend.resolve import Lookup, first_of, in_scope, resolve, resolved_column
from dbt_incremental_dd.frontend.scope import Named, Scope
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Filter, Map, OuterJoin

_NULL_OVER_NOTHING = ("sum", "min", "max", "avg", "mean", "try_sum", "try_avg", "bool_and", "bool_or", "every")
_ZERO_OVER_NOTHING = ("count", "count_if")


@dataclass(frozen=True)
class _Part:
    """FROM and WHERE of a subquery; ``on`` are the conjuncts that read the outside."""

    node: Node
    scope: Scope
    on: tuple[Expr, ...]

    @property
    def outer(self) -> tuple[Id, ...]:
        """What they read of it."""
        refs = {ref for predicate in self.on for ref in predicate.refs}
        return tuple(sorted(refs - set(self.node.columns)))


@dataclass(frozen=True)
class SimpleSubqueries:
    """Each method gives None for a query that is not as simple.

    ``look`` finds the names of the outside. ``from_`` lowers the FROM of a SELECT, and raises UnsupportedSQL where it
    reads the outside.
    """

    look: Lookup
    environment: Environment
    from_: Callable[[exp.Select, Environment], tuple[Node, Scope]]
    conditions: Conditions

    def rows(self, query: exp.Expr) -> Dependent | None:
        """A query of which only the rows' being there counts."""
        limit = number(query, "limit")
        if not is_plain(query) or limit == 0:
            return None
        part = self._part(query)
        return _tied(part, part.node, ()) if part is not None else None

    def listed(self, query: exp.Expr) -> Dependent | None:
        """The relation of an IN list."""
        if not is_plain(query) or is_limited(query) or any(item.is_star for item in query.expressions):
            return None
        part = self._part(query)
        if part is None:
            return None
        try:
            values = [Expr.of(resolve(i.unalias(), in_scope(part.scope), part.scope)) for i in query.expressions]
        except UnsupportedSQL:
            return None
        columns = tuple(Named("", self.environment.ids.new()) for _ in values)
        used = {ref for predicate in part.on for ref in predicate.refs} & set(part.node.columns)
        kept = [(id, Expr.column(id)) for id in part.node.columns if id in used]
        computed = zip((column.id for column in columns), values, strict=True)
        return _tied(part, Map(part.node, (*kept, *computed)), columns)

    def aggregate(self, query: exp.Expr) -> Computed | None:
        """An aggregate of the rows that equal the outer row in some columns: one group for each."""
        part = None
        if isinstance(query, exp.Select) and is_one_row(query, exactly=True):
            part = self._part(query)
        if part is None:
            return None
        sides = [side for side in (_two_sides(p, frozenset(part.node.columns)) for p in part.on) if side is not None]
        try:
            item = resolve(query.expressions[0].unalias(), in_scope(part.scope), part.scope)
        except UnsupportedSQL:
            return None
        calls = find_aggregates([item])
        if len(sides) < len(part.on) or any(_over_nothing(call) is None for call in calls):
            return None
        ids = self.environment.ids
        node, keys = key_columns(part.node, [side.inner.tree for side in sides], ids)
        made = aggregation(node, keys, calls, global_row=False, ids=ids)
        zeros = {id: Expr(f"coalesce({id}, 0L)") for id in (made.known_id(c) for c in calls if _over_nothing(c) == 0)}
        value = Expr.of(made.rewrite(item)).substitute(zeros)
        id = ids.new()

        def join(node: Node, outer: tuple[Expr, ...]) -> Node:
            pairs = zip(outer, sides, strict=True)
            on = tuple(Expr(f"({given.sql}) {side.sign} {made.known_id(side.inner.tree)}") for given, side in pairs)
            return Map(OuterJoin("left", node, made.node, on), (*itself(node), (id, value)))

        return Computed(id, tuple(_resolved(side.outer) for side in sides), join)

    def _part(self, query: exp.Select) -> _Part | None:
        """None where the query reads the outside elsewhere than in conjuncts of WHERE."""
        inner = self.environment.with_ctes(query.args.get("with_"))
        where = query.args.get("where")
        on: list[Expr] = []
        try:
            node, scope = self.from_(query, inner)
            both = first_of(in_scope(scope), self.look)
            for conjunct in conjuncts(where.this) if where is not None else ():
                if has_subquery(conjunct):
                    node = self.conditions.filtered(node, conjunct, scope, inner)
                    continue
                predicate = Expr.of(resolve(conjunct, both, scope))
                if predicate.refs <= set(node.columns):
                    node = Filter(node, predicate)
                else:
                    on.append(predicate)
        except UnsupportedSQL:
            return None
        return _Part(node, scope, tuple(on))


def _resolved(expr: Expr) -> exp.Expr:
    """Its tree, whose columns stand by their ids."""
    tree = expr.tree.copy()
    for column in tree.find_all(exp.Column):
        column.meta["resolved"] = True
    return tree


def _tied(part: _Part, right: Node, columns: tuple[Named, ...]) -> Dependent:
    def tie(node: Node, values: tuple[Expr, ...]) -> Tied:
        given = dict(zip(part.outer, values, strict=True))
        return Tied(right, columns, tuple(predicate.substitute(given) for predicate in part.on))

    return Dependent(tuple(resolved_column(id) for id in part.outer), tie)


def unwrapped(query: exp.Expr) -> exp.Expr:
    """Without parentheses that mean nothing."""
    while isinstance(query, exp.Subquery) and not any(query.args.get(c) for c in ("alias", "with_", "order", "limit")):
        query = query.this
    return query


def is_plain(query: exp.Expr, *, aggregates: bool = False) -> TypeGuard[exp.Select]:
    """Whether it is a SELECT of FROM and WHERE alone; with ``aggregates``, over one group of all rows."""
    if not isinstance(query, exp.Select) or query.args.get("from_") is None:
        return False
    if any(query.args.get(clause) for clause in ("group", "having", "qualify", "offset", "laterals", "windows")):
        return False
    with_ = query.args.get("with_")
    if with_ is not None and with_.recursive:
        return False
    return bool(find_aggregates(query.expressions)) == aggregates and not any(
        item.find(exp.Window, exp.Query) for item in query.expressions
    )


def is_one_row(query: exp.Expr, *, exactly: bool = False) -> bool:
    """Whether it has at most one row (``exactly``: one), as can be seen from it: an aggregate over all, or LIMIT 1."""
    if exactly:
        if not is_plain(query, aggregates=True) or query.args.get("distinct"):
            return False
        return len(query.expressions) == 1 and not is_limited(query)
    if number(query, "limit") == 1:
        return True
    if not isinstance(query, exp.Select) or query.args.get("group"):
        return False
    return bool(find_aggregates(query.expressions)) or query.args.get("having") is not None


@dataclass(frozen=True)
class _Sides:
    inner: Expr
    outer: Expr
    sign: str


def _two_sides(predicate: Expr, inner: frozenset[Id]) -> _Sides | None:
    sides = predicate.equality_sides()
    if sides is not None:
        a, b, null_safe = sides
        sign = "<=>" if null_safe else "="
        if a.refs and a.refs <= inner and not b.refs & inner:
            return _Sides(a, b, sign)
        if b.refs and b.refs <= inner and not a.refs & inner:
            return _Sides(b, a, sign)
    return None


def _over_nothing(call: exp.Expr) -> int | None:
    """0 for an aggregate that is 0 over no rows, 1 for one that is NULL, None for others."""
    while isinstance(call, exp.Filter):
        call = call.this
    name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
    return 0 if name in _ZERO_OVER_NOTHING else 1 if name in _NULL_OVER_NOTHING else None
