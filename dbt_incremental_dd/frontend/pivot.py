"""PIVOT as aggregates with FILTER, UNPIVOT as one row of columns that become rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, FLOATS, INTEGERS, Decimal
from dbt_incremental_dd.frontend.aggregate import aggregation, find_aggregates, is_aggregate, key_columns
from dbt_incremental_dd.frontend.block import Environment
from dbt_incremental_dd.frontend.generators import Part
from dbt_incremental_dd.frontend.resolve import in_scope, resolve, resolved_column
from dbt_incremental_dd.frontend.scope import Named, Scope, Source
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id
from dbt_incremental_dd.logical.nodes import Filter, Map, Union

_EMPTY_IS_NULL = (*INTEGERS, *FLOATS, BOOLEAN)
"""Where all values are of these types or decimals, Spark answers NULL for a pivot value that a group has no row of."""
_TAKES_ANY_ROW = ("first", "first_value", "last", "last_value", "any_value", "any")


def pivoted(part: Part, pivot: exp.Pivot, made: Schema, environment: Environment) -> Part:
    """The relation under PIVOT or UNPIVOT; ``made`` are the columns that Spark gives it."""
    part = _unpivoted(part, pivot, made, environment) if pivot.unpivot else _pivoted(part, pivot, made, environment)
    node, scope = part
    if not pivot.alias:
        return part
    return node, Scope.of(Source((pivot.alias,), scope.visible), scope.carried)


def _pivoted(part: Part, pivot: exp.Pivot, made: Schema, environment: Environment) -> Part:
    """Groups of all columns that neither FOR nor an aggregate reads."""
    node, scope = part
    if len(pivot.fields) != 1 or pivot.args.get("group") or scope.carried:
        raise UnsupportedSQL("PIVOT with more than one FOR")
    field = pivot.fields[0]
    by = [resolve(tree, in_scope(scope), scope) for tree in _several(field.this)]
    items = [resolve(tree.unalias(), in_scope(scope), scope) for tree in pivot.expressions]
    read = {ref for tree in (*by, *items) for ref in Expr.of(tree).refs}
    kept = tuple(column for column in scope.visible if column.id not in read)
    columns = made.columns[len(kept) :]
    empty_is_null = all(c.type in _EMPTY_IS_NULL or isinstance(c.type, Decimal) for c in columns)
    values = [
        _where(item, _equal(by, value), empty_is_null=empty_is_null) for value in field.expressions for item in items
    ]
    node, keys = key_columns(node, [resolved_column(column.id) for column in kept], environment.ids)
    reduced = aggregation(node, keys, find_aggregates(values), global_row=not kept, ids=environment.ids)
    outputs = [(environment.ids.new(), Expr.of(reduced.rewrite(value))) for value in values]
    own = tuple((column.id, Expr.column(column.id)) for column in kept)
    return Map(reduced.node, (*own, *outputs)), _rest(scope, kept, zip(columns, (id for id, _ in outputs), strict=True))


def _equal(by: list[exp.Expr], value: exp.Expr) -> exp.Expr:
    """Whether a row has the pivot value; NULL is one, too."""
    given = _several(value.this if isinstance(value, exp.PivotAlias) else value)
    if len(given) != len(by):
        raise UnsupportedSQL("PIVOT of values that are not literals")
    pairs = [exp.NullSafeEQ(this=column.copy(), expression=one.copy()) for column, one in zip(by, given, strict=True)]
    condition: exp.Expr = pairs[0]
    for pair in pairs[1:]:
        condition = exp.And(this=condition, expression=pair)
    return condition


def _where(item: exp.Expr, condition: exp.Expr, *, empty_is_null: bool) -> exp.Expr:
    """The expression of aggregates over the rows of one pivot value."""
    holder = exp.Tuple(expressions=[item.copy()])
    for call in find_aggregates([holder]):
        if not isinstance(call, exp.Anonymous) or not is_aggregate(call):
            raise UnsupportedSQL("PIVOT of an aggregate with FILTER or IGNORE NULLS")
        if str(call.this).lower() in _TAKES_ANY_ROW and not empty_is_null:
            raise UnsupportedSQL(f"PIVOT of {call.this}")
        call.replace(exp.Filter(this=call.copy(), expression=exp.Where(this=condition.copy())))
    value: exp.Expr = holder.expressions[0]
    if not empty_is_null:
        return value
    count = exp.Anonymous(this="count", expressions=[exp.Star()])
    some = exp.GT(
        this=exp.Filter(this=count, expression=exp.Where(this=condition.copy())), expression=exp.Literal.number(0)
    )
    return exp.Case(ifs=[exp.If(this=some, true=value)])


def _unpivoted(part: Part, pivot: exp.Pivot, made: Schema, environment: Environment) -> Part:
    node, scope = part
    rows: list[tuple[str, list[Id]]] = []
    for item in pivot.fields[0].expressions:
        tree = item.this if isinstance(item, exp.PivotAlias) else item
        values = [resolve(column, in_scope(scope), scope) for column in _several(tree)]
        label = item.alias if isinstance(item, exp.PivotAlias) else "_".join(column.name for column in _several(tree))
        rows.append((label, [_id(value) for value in values]))
    read = {id for _, ids in rows for id in ids}
    kept = tuple(column for column in scope.visible if column.id not in read)
    columns = made.columns[len(kept) :]
    if scope.carried or any(len(ids) != len(columns) - 1 for _, ids in rows):
        raise UnsupportedSQL("UNPIVOT")
    own = [(column.id, Expr.column(column.id)) for column in kept]
    branches = []
    for label, ids in rows:
        fresh = [(environment.ids.new(), expr) for expr in (_literal(label), *map(Expr.column, ids))]
        branches.append(Map(node, (*((environment.ids.new(), expr) for _, expr in own), *fresh)))
    union = Union(tuple(branches), tuple(environment.ids.new() for _ in branches[0].columns))
    values_ = union.ids[len(kept) + 1 :]
    present = Expr(" OR ".join(f"{id} IS NOT NULL" for id in values_))
    result = union if pivot.args.get("include_nulls") else Filter(union, present)
    renamed = {old.id: new for old, new in zip(kept, union.ids, strict=False)}
    moved = tuple(Named(column.name, renamed[column.id]) for column in kept)
    sources = tuple(
        replace(s, columns=tuple(Named(c.name, renamed[c.id]) for c in s.columns if c.id in renamed))
        for s in scope.sources
    )
    return result, _rest(Scope(sources), moved, zip(columns, union.ids[len(kept) :], strict=True))


def _rest(scope: Scope, kept: tuple[Named, ...], made: Iterable[tuple[Column, Id]]) -> Scope:
    """What is left of a scope, and the new columns after it."""
    new = tuple(Named(column.name, id) for column, id in made)
    ids = {column.id for column in kept}
    sources = tuple(replace(s, columns=tuple(c for c in s.columns if c.id in ids)) for s in scope.sources)
    return Scope((*sources, Source((), new)), kept + new)


def _several(tree: exp.Expr) -> list[exp.Expr]:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return list(tree.expressions) if isinstance(tree, exp.Tuple) else [tree]


def _literal(text: str) -> Expr:
    return Expr.of(exp.Literal.string(text))


def _id(value: exp.Expr) -> Id:
    id = Expr.of(value).as_column
    if id is None:
        raise UnsupportedSQL("UNPIVOT of a field")
    return id
