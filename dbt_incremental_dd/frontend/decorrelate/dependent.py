"""Correlated queries that are computed for all rows of the outside at once, and tied to these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Environment, LowerQuery
from dbt_incremental_dd.frontend.decorrelate.domain import distinct_values
from dbt_incremental_dd.frontend.outer import Outer
from dbt_incremental_dd.frontend.resolve import Found, Lookup, resolved_column
from dbt_incremental_dd.frontend.scope import Named, Scope
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Constant


@dataclass(frozen=True)
class Tied:
    """A relation, and for which rows of the outside each of its rows is: those for which ``on`` is true."""

    right: Node
    columns: tuple[Named, ...]
    on: tuple[Expr, ...]


@dataclass(frozen=True)
class Dependent:
    """A subquery that reads ``outer`` of the outside; ``tie`` gives it for a plan in which these are the values."""

    outer: tuple[exp.Expr, ...]
    tie: Callable[[Node, tuple[Expr, ...]], Tied]

    def at(self, node: Node) -> Tied:
        """Tied to the outside as it is."""
        return self.tie(node, tuple(Expr.of(tree) for tree in self.outer))


@dataclass(frozen=True)
class Computed:
    """A subquery's value as one more column.

    ``outer``: what it reads of the outside, over the outside's columns; ``join`` gives a plan, in which these are the
    values, the column ``id``.
    """

    id: Id
    outer: tuple[exp.Expr, ...]
    join: Callable[[Node, tuple[Expr, ...]], Node]


@dataclass(frozen=True)
class Conditions:
    """Conditions that may hold subqueries, over a plan of which the names in scope tell.

    ``filtered``: the plan's rows for which one is true. ``as_columns``: one with its subqueries as columns, and these.
    """

    filtered: Callable[[Node, exp.Expr, Scope, Environment], Node]
    as_columns: Callable[[exp.Expr, Scope, Environment], tuple[exp.Expr, list[Computed]]]


def dependent(
    query: exp.Expr, look: Lookup, scope: Scope, environment: Environment, lower_query: LowerQuery
) -> Dependent:
    """Any correlated query; ``look`` and ``scope`` are the outside's. Raises UnsupportedSQL where it has no plan."""
    used = _used(query, look, scope, environment, lower_query)
    if not used:
        raise UnsupportedSQL("correlated subquery")

    def tie(node: Node, values: tuple[Expr, ...]) -> Tied:
        ids = tuple(environment.ids.new() for _ in used)
        domain = distinct_values(node, tuple(zip(ids, values, strict=True)))
        block = lower_query(query, environment.for_each_of(Outer(domain, used, look)))
        on = (Expr(f"({value.sql}) <=> {id}") for value, id in zip(values, block.carried, strict=True))
        return Tied(block.only, block.columns, tuple(on))

    return Dependent(tuple(resolved_column(id) for id in used), tie)


def any_query(
    query: exp.Expr, look: Lookup, scope: Scope, environment: Environment, lower_query: LowerQuery, *, names: bool
) -> Dependent:
    """Any query, by itself where it can be. ``names``: whether those of its columns are asked for."""
    try:
        block = lower_query(query, environment, names=names)
    except UnsupportedSQL:
        return dependent(query, look, scope, environment, lower_query)
    return Dependent((), lambda node, values: Tied(block.only, block.columns, ()))


def _used(
    query: exp.Expr, look: Lookup, scope: Scope, environment: Environment, lower_query: LowerQuery
) -> tuple[Id, ...]:
    """What the query reads of the outside: lowered once over a domain of all its columns, to see."""
    used: dict[Id, None] = {}

    def recording(parts: tuple[str, ...]) -> Found | None:
        found = look(parts)
        if found is not None:
            used[found[0].name] = None
        return found

    all_ids = scope.ids
    lower_query(query, environment.for_each_of(Outer(Constant("", all_ids), all_ids, recording)))
    return tuple(used)
