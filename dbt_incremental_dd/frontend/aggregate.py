"""Aggregate calls and group keys: a Reduce, and how what stands above it refers to its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.functions import AGGREGATES
from dbt_incremental_dd.frontend.resolve import resolved_column
from dbt_incremental_dd.frontend.scope import Ids
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Aggregate, Map, OuterJoin, Reduce

Rewrite = Callable[[exp.Expr], exp.Expr]


@dataclass(frozen=True)
class Aggregation:
    """The plan, and the column of each key and call, by their ``form``."""

    node: Node
    known: Mapping[str, Id]

    def known_id(self, tree: exp.Expr) -> Id:
        """The column of a key or call."""
        return self.known[form(tree)]

    def rewrite(self, tree: exp.Expr, allowed: Iterable[Id] = ()) -> exp.Expr:
        """A clause over the input as one over the output: keys and calls become columns.

        Nothing else of the input may be left; ``allowed`` are columns that come from elsewhere.
        """
        result = replaced(tree.copy(), self.known)
        if Expr.of(result).refs - set(self.node.columns) - set(allowed):
            raise UnsupportedSQL("a column that is neither grouped nor aggregated")
        return result


def is_aggregate(tree: exp.Expr) -> bool:
    """Whether it is an aggregate call, whatever is written around the name: FILTER, WITHIN GROUP, IGNORE NULLS."""
    inner = tree
    while isinstance(inner, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        inner = inner.this
    if isinstance(inner, exp.Any):
        return not isinstance(inner.parent, exp.Like | exp.ILike)  # x LIKE ANY (a, b)
    return isinstance(inner, exp.Anonymous) and str(inner.this).lower() in AGGREGATES


def find_aggregates(clauses: Iterable[exp.Expr]) -> list[exp.Expr]:
    """The outermost aggregate calls. One that OVER makes a window function is none, but its arguments may hold some."""
    found: list[exp.Expr] = []
    for clause in clauses:
        _find(clause, found)
    return found


def _find(tree: exp.Expr, found: list[exp.Expr]) -> None:
    if isinstance(tree, exp.Query):
        return
    if is_aggregate(tree):
        found.append(tree)
        return
    children = list(tree.iter_expressions())
    if isinstance(tree, exp.Window):
        inner = tree.this
        while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            children += [child for child in inner.iter_expressions() if child is not inner.this]
            inner = inner.this
        children = [child for child in children if child is not tree.this]
        children += inner.iter_expressions() if is_aggregate(inner) else [inner]
    for child in children:
        _find(child, found)


def form(tree: exp.Expr) -> str:
    """Equal for expressions that differ in parentheses and in the case of names only."""
    holder = exp.Tuple(expressions=[tree.copy()])
    for paren in list(holder.find_all(exp.Paren)):
        paren.replace(paren.this)
    for call in holder.find_all(exp.Anonymous):
        call.set("this", str(call.this).lower())
    for name in holder.find_all(exp.Identifier):
        name.set("this", name.name.lower())
        name.set("quoted", False)
    return repr(holder)


def with_columns(node: Node, computed: Sequence[tuple[Id, Expr]]) -> Node:
    """The plan with further columns."""
    return Map(node, (*itself(node), *computed)) if computed else node


def itself(node: Node) -> tuple[tuple[Id, Expr], ...]:
    """The outputs of a Map that changes nothing."""
    return tuple((id, Expr.column(id)) for id in node.columns)


def key_columns(node: Node, keys: Sequence[exp.Expr], ids: Ids) -> tuple[Node, dict[str, Id]]:
    """The plan with every group key as a column, and the columns by the keys' forms."""
    known: dict[str, Id] = {}
    computed: list[tuple[Id, Expr]] = []
    for key in keys:
        expr = Expr.of(key)
        if form(key) in known:
            continue
        known[form(key)] = expr.as_column or ids.new()
        if expr.as_column is None:
            computed.append((known[form(key)], expr))
    return with_columns(node, computed), known


def aggregation(
    node: Node, keys: Mapping[str, Id], calls: Sequence[exp.Expr], *, global_row: bool, ids: Ids
) -> Aggregation:
    """The Reduce by columns that are there already."""
    aggregates: dict[str, Aggregate] = {}
    for call in calls:
        if form(call) not in aggregates:
            aggregates[form(call)] = _aggregate(call, ids.new())
    if not keys and not aggregates:
        aggregates["count"] = _aggregate(exp.Anonymous(this="count", expressions=[exp.Star()]), ids.new())
    reduce = Reduce(node, tuple(dict.fromkeys(keys.values())), tuple(aggregates.values()), global_row)
    return Aggregation(reduce, {**keys, **{sql: a.id for sql, a in aggregates.items()}})


def aggregated_for_each(
    domain: Node, keys: tuple[Id, ...], node: Node, carried: tuple[Id, ...], calls: Sequence[exp.Expr], ids: Ids
) -> Aggregation:
    """Aggregates without GROUP BY for each row of ``domain``, also for those that ``node`` has no rows for.

    Such a row is one of NULLs, which a FILTER keeps from the aggregates: they see nothing, as over an empty input.
    """
    present = ids.new()
    on = tuple(Expr(f"{key} <=> {own}") for key, own in zip(keys, carried, strict=True))
    rows = OuterJoin("left", domain, with_columns(node, [(present, Expr("true"))]), on)
    filtered = {form(call): _only_where(call, present) for call in calls}
    made = aggregation(
        rows, {form(resolved_column(key)): key for key in keys}, list(filtered.values()), global_row=False, ids=ids
    )
    known = {name: made.known_id(call) for name, call in filtered.items()}
    known |= {form(resolved_column(own)): key for own, key in zip(carried, keys, strict=True)}
    return Aggregation(made.node, {**made.known, **known})


def _only_where(call: exp.Expr, present: Id) -> exp.Expr:
    """The call over those rows only for which the column is true."""
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        return type(call)(this=_only_where(call.this, present))
    condition: exp.Expr = resolved_column(present)
    if isinstance(call, exp.Filter):
        condition = exp.And(this=exp.paren(call.expression.this.copy()), expression=condition)
        call = call.this
    return exp.Filter(this=call.copy(), expression=exp.Where(this=condition))


def _aggregate(call: exp.Expr, id: Id) -> Aggregate:
    inner, condition, plain = call, None, True
    while not isinstance(inner, exp.Anonymous | exp.Any):
        if isinstance(inner, exp.Filter):
            condition = Expr.of(inner.expression.this)
        else:
            plain = False
        inner = inner.this
    if isinstance(inner, exp.Any):
        argument = inner.this.this if isinstance(inner.this, exp.Paren) else inner.this
        return Aggregate(
            id, Expr.of(call), "any", args=(Expr.of(argument),), distinct=False, filter=condition, plain=plain
        )
    arguments = list(inner.expressions)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = list(arguments[0].expressions)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        arguments = []
    if any(isinstance(a, exp.IgnoreNulls | exp.RespectNulls | exp.Order) for a in arguments):
        plain = False
    parts = tuple(Expr.of(argument) for argument in arguments)
    return Aggregate(
        id, Expr.of(call), str(inner.this).lower(), args=parts, distinct=distinct, filter=condition, plain=plain
    )


def replaced(tree: exp.Expr, known: Mapping[str, Id]) -> exp.Expr:
    """The tree with subtrees of a known form replaced by columns, the outermost first; changes ``tree``."""
    if not known:
        return tree
    id = known.get(form(tree))
    if id is not None:
        return resolved_column(id)
    for child in list(tree.iter_expressions()):
        is_function = isinstance(tree, exp.Window) and child is tree.this
        made = _with_arguments_replaced(child, known) if is_function else replaced(child, known)
        if made is not child:
            child.replace(made)
    return tree


def _with_arguments_replaced(call: exp.Expr, known: Mapping[str, Id]) -> exp.Expr:
    """A window function's call, which is over the groups: it is none of their aggregates, though written alike."""
    for child in list(call.iter_expressions()):
        is_call = isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls) and child is call.this
        made = _with_arguments_replaced(child, known) if is_call else replaced(child, known)
        if made is not child:
            child.replace(made)
    return call
