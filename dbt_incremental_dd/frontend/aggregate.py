"""GROUP BY and aggregate calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.functions import AGGREGATES
from dbt_incremental_dd.frontend.resolve import resolve
from dbt_incremental_dd.frontend.scope import Ids, Scope
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Aggregate, Id, Map, Node, Reduce

Items = Sequence[tuple[str, exp.Expression]]


@dataclass(frozen=True)
class Aggregation:
    """The plan, and how a clause over its input becomes one over its output."""

    node: Node
    rewrite: Callable[[exp.Expression], exp.Expression]


def is_aggregate(tree: exp.Expression) -> bool:
    """Whether it is an aggregate call, whatever is written around the name: FILTER, WITHIN GROUP, IGNORE NULLS."""
    inner = tree
    while isinstance(inner, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        inner = inner.this
    if isinstance(inner, exp.Any):
        return True
    return isinstance(inner, exp.Anonymous) and str(inner.this).lower() in AGGREGATES


def find_aggregates(clauses: Sequence[exp.Expression]) -> list[exp.Expression]:
    """The outermost aggregate calls; what OVER makes a window function is none, but its arguments may hold some."""
    found: list[exp.Expression] = []
    for clause in clauses:
        _find(clause, found)
    return found


def _find(tree: exp.Expression, found: list[exp.Expression]) -> None:
    if isinstance(tree, exp.Window):
        inner = tree.this
        for child in inner.iter_expressions() if is_aggregate(inner) else (inner,):
            _find(child, found)
        for key in ("partition_by", "order", "spec"):
            value = tree.args.get(key)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expression):
                    _find(child, found)
    elif is_aggregate(tree):
        found.append(tree)
    else:
        for child in tree.iter_expressions():
            _find(child, found)


def lower_aggregation(
    node: Node,
    group: exp.Group | None,
    calls: Sequence[exp.Expression],
    items: Items,
    scope: Scope,
    aliases: Mapping[str, exp.Expression],
    ids: Ids,
) -> Aggregation:
    """Group keys as columns, then the Reduce."""
    keys: dict[str, Id] = {}
    computed: list[tuple[Id, Expr]] = []
    for expr in _keys(group, items, scope, aliases):
        if expr.sql in keys:
            continue
        keys[expr.sql] = expr.as_column or ids.new()
        if expr.as_column is None:
            computed.append((keys[expr.sql], expr))
    if computed:
        node = Map(node, (*((id, Expr.column(id)) for id in node.columns), *computed))
    aggregates: dict[str, Aggregate] = {}
    for call in calls:
        sql = Expr.of(call).sql
        if sql not in aggregates:
            aggregates[sql] = _aggregate(call, ids.new())
    reduce = Reduce(
        node, tuple(dict.fromkeys(keys.values())), tuple(aggregates.values()), global_row=not keys and group is None
    )
    known = {**keys, **{sql: a.id for sql, a in aggregates.items()}}
    return Aggregation(reduce, lambda clause: _rewritten(clause, known, set(reduce.columns)))


def _keys(group: exp.Group | None, items: Items, scope: Scope, aliases: Mapping[str, exp.Expression]) -> list[Expr]:
    if group is None:
        return []
    for clause, name in (
        ("rollup", "ROLLUP"),
        ("cube", "CUBE"),
        ("grouping_sets", "GROUPING SETS"),
        ("totals", "TOTALS"),
    ):
        if group.args.get(clause):
            raise UnsupportedSQL(name)
    if group.args.get("all"):
        return [Expr.of(value) for _, value in items if not find_aggregates([value])]
    return [Expr.of(_key(tree, items, scope, aliases)) for tree in group.expressions]


def _key(tree: exp.Expression, items: Items, scope: Scope, aliases: Mapping[str, exp.Expression]) -> exp.Expression:
    if isinstance(tree, exp.Rollup | exp.Cube | exp.GroupingSets):
        raise UnsupportedSQL({exp.Rollup: "ROLLUP", exp.Cube: "CUBE"}.get(type(tree), "GROUPING SETS"))
    if isinstance(tree, exp.Literal) and tree.is_int:
        value = items[int(tree.this) - 1][1]
        if find_aggregates([value]):
            raise UnsupportedSQL("GROUP BY of an aggregate")
        return value
    return resolve(tree, scope, aliases)


def _aggregate(call: exp.Expression, id: Id) -> Aggregate:
    inner, condition, plain = call, None, True
    while not isinstance(inner, exp.Anonymous | exp.Any):
        if isinstance(inner, exp.Filter):
            condition = Expr.of(inner.expression.this)
        else:
            plain = False
        inner = inner.this
    if isinstance(inner, exp.Any):
        argument = inner.this.this if isinstance(inner.this, exp.Paren) else inner.this
        return Aggregate(id, Expr.of(call), "any", (Expr.of(argument),), False, condition, plain)
    arguments = list(inner.expressions)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        arguments = []
    if any(a.find(exp.Star) for a in arguments):
        raise UnsupportedSQL("* as an argument of an aggregate")
    parts = tuple(Expr.of(argument) for argument in arguments)
    return Aggregate(id, Expr.of(call), str(inner.this).lower(), parts, distinct, condition, plain)


def _rewritten(tree: exp.Expression, known: Mapping[str, Id], columns: set[Id]) -> exp.Expression:
    """Keys and aggregate calls become columns; nothing else of the input may be left."""
    result = _replace(tree.copy(), known)
    stray = Expr.of(result).refs - columns
    if stray:
        raise UnsupportedSQL("a column that is neither grouped nor aggregated")
    return result


def _replace(tree: exp.Expression, known: Mapping[str, Id]) -> exp.Expression:
    id = known.get(Expr.of(tree).sql)
    if id is not None:
        return exp.column(id)
    if isinstance(tree, exp.Paren) and (id := known.get(Expr.of(tree.this).sql)) is not None:
        return exp.column(id)
    for child in list(tree.iter_expressions()):
        made = _replace(child, known)
        if made is not child:
            child.replace(made)
    return tree
