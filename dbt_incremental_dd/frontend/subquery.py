"""Subqueries: EXISTS and IN as semi and anti joins, a scalar aggregate as one more column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.aggregate import aggregation, find_aggregates, key_columns
from dbt_incremental_dd.frontend.block import Block, Environment
from dbt_incremental_dd.frontend.from_clause import LowerQuery, lower_from
from dbt_incremental_dd.frontend.order import is_limited, number
from dbt_incremental_dd.frontend.resolve import first_of, in_scope, resolve, resolved_column
from dbt_incremental_dd.frontend.scope import Scope
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Distinct, Filter, Id, Join, Map, Node, OuterJoin, SemiJoin

_CORRELATED = UnsupportedSQL("correlated subquery")
_NULL_OVER_NOTHING = ("sum", "min", "max", "avg", "mean", "try_sum", "try_avg", "bool_and", "bool_or", "every")
_ZERO_OVER_NOTHING = ("count", "count_if")


class Subqueries:
    """Lowers the subqueries of one SELECT, whose FROM is ``scope``."""

    def __init__(self, scope: Scope, environment: Environment, lower_query: LowerQuery) -> None:
        self._scope = scope
        self._environment = environment
        self._lower_query = lower_query

    def filtered(self, node: Node, predicate: exp.Expression) -> Node:
        """The rows for which a WHERE clause is true."""
        for conjunct in conjuncts(predicate):
            node = self._conjunct(node, conjunct)
        return node

    def _conjunct(self, node: Node, conjunct: exp.Expression) -> Node:
        inner, negated = _without_not(conjunct)
        if isinstance(inner, exp.Exists):
            right, on = self._exists(inner.this)
            return SemiJoin(negated, node, right, on)
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            return self._in(node, inner, negated)
        tree, scalars = self.without_scalars(conjunct)
        for scalar in scalars:
            node = scalar.join(node)
        filter = Filter(node, Expr.of(resolve(tree, in_scope(self._scope), self._scope)))
        return filter if not scalars else _without(filter, scalars)

    def _exists(self, query: exp.Expression) -> tuple[Node, tuple[Expr, ...]]:
        body = _unwrapped(query)
        if not _is_plain(body) or not (number(body, "limit") is None or (number(body, "limit") or 0) > 0):
            return self._closed(query).plan, ()
        correlated = self._correlated(body)
        return correlated.node, correlated.on

    def _in(self, node: Node, tree: exp.In, negated: bool) -> Node:
        """``x IN (...)``; NOT IN also leaves out all rows where a NULL makes the answer unknown."""
        sides = tree.this.expressions if isinstance(tree.this, exp.Tuple) else [tree.this]
        values = [Expr.of(resolve(side, in_scope(self._scope), self._scope)) for side in sides]
        right, columns, on = self._listed(_unwrapped(tree.args["query"]))
        if len(columns) != len(values):
            raise UnsupportedSQL("IN over different numbers of columns")
        equal = tuple(Expr(f"({value.sql}) = {column}") for value, column in zip(values, columns, strict=True))
        matched = SemiJoin(negated, node, right, (*equal, *on))
        if not negated:
            return matched
        if len(values) > 1:
            raise UnsupportedSQL("NOT IN of several columns", "Write NOT EXISTS.")
        return self._without_unknown(matched, values[0], right, columns[0], on)

    def _without_unknown(self, node: Node, value: Expr, right: Node, column: Id, on: tuple[Expr, ...]) -> Node:
        """Of rows that match nothing: those for which the list is empty, or neither side of it NULL."""
        is_null = self._environment.ids.new()
        needed = sorted({ref for predicate in on for ref in predicate.refs} & set(right.columns))
        fresh = {id: self._environment.ids.new() for id in needed}
        outputs = [(fresh[id], Expr.column(id)) for id in needed] + [(is_null, Expr(f"{column} IS NULL"))]
        kinds = Distinct(Map(right, tuple(outputs)))
        renames = {id: Expr.column(new) for id, new in fresh.items()}
        unknown = Expr(f"{is_null} OR ({value.sql}) IS NULL")
        return SemiJoin(True, node, kinds, (unknown, *(predicate.substitute(renames) for predicate in on)))

    def _listed(self, query: exp.Expression) -> tuple[Node, list[Id], tuple[Expr, ...]]:
        """The relation of an IN list, its columns, and what ties it to the outside."""
        if _is_plain(query) and not is_limited(query) and not _has_star(query):
            correlated = self._correlated(query)
            ids, computed = [], []
            for item in query.expressions:
                value = Expr.of(resolve(item.unalias(), in_scope(correlated.scope), correlated.scope))
                ids.append(self._environment.ids.new())
                computed.append((ids[-1], value))
            used = {ref for predicate in correlated.on for ref in predicate.refs} & set(correlated.node.columns)
            kept = [(id, Expr.column(id)) for id in correlated.node.columns if id in used]
            return Map(correlated.node, (*kept, *computed)), ids, correlated.on
        block = self._closed(query)
        return block.only, [column.id for column in block.columns], ()

    def _closed(self, query: exp.Expression) -> Block:
        try:
            return self._lower_query(query, self._environment)
        except UnsupportedSQL as error:
            raise _CORRELATED from error

    def _correlated(self, select: exp.Select) -> _Correlated:
        """FROM and WHERE of a subquery; conjuncts that read the outside are kept apart."""
        inner = self._environment.with_ctes(select.args.get("with_"))
        node, scope = lower_from(select, inner, self._lower_query)
        nested = Subqueries(scope, inner, self._lower_query)
        look = first_of(in_scope(scope), in_scope(self._scope))
        on: list[Expr] = []
        where = select.args.get("where")
        for conjunct in conjuncts(where.this) if where is not None else ():
            if conjunct.find(exp.Query, exp.Exists):
                node = nested.filtered(node, conjunct)
                continue
            predicate = Expr.of(resolve(conjunct, look, scope))
            if predicate.refs <= set(node.columns):
                node = Filter(node, predicate)
            else:
                on.append(predicate)
        return _Correlated(node, scope, tuple(on))

    def without_scalars(self, tree: exp.Expression) -> tuple[exp.Expression, list[Scalar]]:
        """A copy of the tree with scalar subqueries as columns, and what makes these columns."""
        holder = exp.Tuple(expressions=[tree.copy()])
        scalars = []
        for subquery in list(holder.find_all(exp.Subquery)):
            if isinstance(subquery.parent, exp.In | exp.Exists) or subquery.find_ancestor(exp.Query):
                continue
            scalars.append(self._scalar(_unwrapped(subquery)))
            subquery.replace(resolved_column(scalars[-1].id))
        return holder.expressions[0], scalars

    def _scalar(self, query: exp.Expression) -> Scalar:
        is_aggregate = _is_plain(query, aggregates=True) and len(query.expressions) == 1
        if not is_aggregate or is_limited(query) or query.args.get("having") or query.args.get("distinct"):
            raise UnsupportedSQL("scalar subquery", "Join with the query instead, or let it be one aggregate.")
        try:
            block = self._lower_query(query, self._environment)
        except UnsupportedSQL:
            return self._decorrelated(query)
        id = self._environment.ids.new()
        plan = Map(block.plan, ((id, Expr.column(block.columns[0].id)),))
        return Scalar(id, lambda node: Join((node, plan), ()), id)

    def _decorrelated(self, query: exp.Select) -> Scalar:
        """An aggregate of the rows that equal the outer row in some columns: one group for each."""
        correlated = self._correlated(query)
        inner = frozenset(correlated.node.columns)
        sides = [_two_sides(predicate, inner) for predicate in correlated.on]
        item = resolve(query.expressions[0].unalias(), in_scope(correlated.scope), correlated.scope)
        calls = find_aggregates([item])
        if any(_over_nothing(call) is None for call in calls):
            raise _CORRELATED
        ids = self._environment.ids
        node, keys = key_columns(correlated.node, [side.inner.tree for side in sides], ids)
        made = aggregation(node, keys, calls, False, ids)
        value = made.rewrite(item)
        counts = {made.known_id(call) for call in calls if _over_nothing(call) == 0}
        zeros = {id: Expr(f"coalesce({id}, 0L)") for id in counts}
        on = tuple(Expr(f"({s.outer.sql}) {s.sign} {made.known_id(s.inner.tree)}") for s in sides)
        id = ids.new()

        def join(node: Node) -> Node:
            both = OuterJoin("left", node, made.node, on)
            kept = tuple((column, Expr.column(column)) for column in node.columns)
            return Map(both, (*kept, (id, Expr.of(value).substitute(zeros))))

        return Scalar(id, join, None)


@dataclass(frozen=True)
class Scalar:
    """A scalar subquery: ``join`` gives a plan its column ``id``. One with a ``closed`` id can stand anywhere."""

    id: Id
    join: Callable[[Node], Node]
    closed: Id | None


@dataclass(frozen=True)
class _Correlated:
    node: Node
    scope: Scope
    on: tuple[Expr, ...]


@dataclass(frozen=True)
class _Sides:
    inner: Expr
    outer: Expr
    sign: str


def conjuncts(tree: exp.Expression) -> list[exp.Expression]:
    """The operands of a top-level AND chain."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return [*conjuncts(tree.left), *conjuncts(tree.right)] if isinstance(tree, exp.And) else [tree]


def _without_not(tree: exp.Expression) -> tuple[exp.Expression, bool]:
    negated = False
    while isinstance(tree, exp.Paren | exp.Not):
        negated = negated != isinstance(tree, exp.Not)
        tree = tree.this
    return tree, negated


def _unwrapped(query: exp.Expression) -> exp.Expression:
    while isinstance(query, exp.Subquery) and not any(query.args.get(c) for c in ("alias", "with_", "order", "limit")):
        query = query.this
    return query


def _is_plain(query: exp.Expression, aggregates: bool = False) -> bool:
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


def _has_star(query: exp.Select) -> bool:
    return any(item.is_star for item in query.expressions)


def _two_sides(predicate: Expr, inner: frozenset[Id]) -> _Sides:
    sides = predicate.equality_sides()
    if sides is not None:
        a, b, null_safe = sides
        sign = "<=>" if null_safe else "="
        if a.refs and a.refs <= inner and not b.refs & inner:
            return _Sides(a, b, sign)
        if b.refs and b.refs <= inner and not a.refs & inner:
            return _Sides(b, a, sign)
    raise _CORRELATED


def _over_nothing(call: exp.Expression) -> int | None:
    """0 for an aggregate that is 0 over no rows, 1 for one that is NULL, None for others."""
    while isinstance(call, exp.Filter):
        call = call.this
    name = str(call.this).lower() if isinstance(call, exp.Anonymous) else ""
    return 0 if name in _ZERO_OVER_NOTHING else 1 if name in _NULL_OVER_NOTHING else None


def _without(node: Node, scalars: list[Scalar]) -> Node:
    left_out = {scalar.id for scalar in scalars}
    return Map(node, tuple((id, Expr.column(id)) for id in node.columns if id not in left_out))
