"""Lowering a query: set operations, WITH, and SELECTs; a block that is not understood is kept as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.frontend.block import Analyze, Block, Environment, Input
from dbt_incremental_dd.frontend.now import uses_now
from dbt_incremental_dd.frontend.order import lower_order
from dbt_incremental_dd.frontend.relations import base_tables, parse
from dbt_incremental_dd.frontend.scope import Ids, Named, Scope, Source
from dbt_incremental_dd.frontend.select import lower_select
from dbt_incremental_dd.frontend.template import block_template, template
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import (
    Constant,
    Distinct,
    Fallback,
    Id,
    Map,
    Negate,
    Node,
    Threshold,
    Union,
)


@dataclass(frozen=True)
class Query:
    """A lowered query: ``names`` are its columns' names, parallel to ``plan.columns``."""

    plan: Node
    names: tuple[str, ...]


def lower(sql: str, inputs: Mapping[str, Input], output: Schema, analyze: Analyze) -> Query:
    """The plan of a whole query, whose columns Spark says are ``output``.

    Never fails for a query that parses: what has no plan of its own becomes a Fallback.
    """
    if uses_now(sql):
        return whole(sql, inputs, output, "dd_now() moves with time", temporal=True)
    environment = Environment(inputs, analyze, Ids())
    try:
        block = lower_query(parse(sql), environment)
    except UnsupportedSQL as error:
        return whole(sql, inputs, output, error.construct)
    if len(block.columns) != len(output):
        return whole(sql, inputs, output, "its columns are counted otherwise")
    return Query(_only(block), output.names)


def whole(sql: str, inputs: Mapping[str, Input], output: Schema, reason: str, temporal: bool = False) -> Query:
    """The query as one Fallback over its base relations."""
    text, keys = template(sql, inputs)
    environment = Environment(inputs, lambda *_: output, Ids())
    return Query(_fallback(text, keys, output, environment, reason, temporal), output.names)


def lower_query(tree: exp.Expression, environment: Environment) -> Block:
    """A closed query block. One that has no plan is kept as text, if Spark can tell its columns."""
    try:
        return _lower(tree, environment)
    except UnsupportedSQL as error:
        reason = error.construct
    text, keys = _block_text(tree, environment)
    schema = environment.analyze(text, keys)
    node = _fallback(text, keys, schema, environment, reason, temporal=False)
    return Block(node, tuple(Named(name, id) for name, id in zip(schema.names, node.columns, strict=True)))


def _lower(tree: exp.Expression, environment: Environment) -> Block:
    with_ = tree.args.get("with_")
    if with_ is not None and with_.recursive:
        raise UnsupportedSQL("WITH RECURSIVE")
    inner = environment.with_ctes(with_)
    if isinstance(tree, exp.Subquery):
        block = lower_query(tree.this, inner)
        return _limited(tree, block, inner)
    if isinstance(tree, exp.SetOperation):
        return _limited(tree, _set_operation(tree, inner), inner)
    if not any(True for _ in base_tables(tree)) and not inner.ctes:
        return _constant(tree, inner)
    if isinstance(tree, exp.Select):
        return lower_select(tree, inner, lower_query)
    raise UnsupportedSQL(type(tree).__name__)


def _constant(tree: exp.Expression, environment: Environment) -> Block:
    """A query over no relation at all."""
    text, keys = block_template(tree)
    schema = environment.analyze(text, keys)
    columns = tuple(Named(name, environment.ids.new()) for name in schema.names)
    return Block(Constant(text.format(), tuple(column.id for column in columns)), columns)


def _limited(tree: exp.Expression, block: Block, environment: Environment) -> Block:
    """ORDER BY and LIMIT of a set operation or a parenthesized query: over its output columns."""
    scope = Scope.of(Source((), block.columns))
    return Block(lower_order(tree, block.plan, block.columns, scope, {}), block.columns)


def _set_operation(tree: exp.SetOperation, environment: Environment) -> Block:
    if tree.args.get("by_name"):
        raise UnsupportedSQL("UNION BY NAME")
    left, right = lower_query(tree.left, environment), lower_query(tree.right, environment)
    sides = (_only(left), _only(right))
    if len(sides[0].columns) != len(sides[1].columns):
        raise UnsupportedSQL("a set operation over different numbers of columns")
    every = tree.args.get("distinct") is False
    combine = {exp.Union: _union, exp.Except: _except, exp.Intersect: _intersect}[type(tree)]
    plan = combine(sides[0], sides[1], every, environment.ids)
    return Block(plan, tuple(Named(c.name, id) for c, id in zip(left.columns, plan.columns, strict=True)))


def _union(left: Node, right: Node, every: bool, ids: Ids) -> Node:
    both = _plus(left, right, ids)
    return both if every else Distinct(both)


def _except(left: Node, right: Node, every: bool, ids: Ids) -> Node:
    """L - R, at least nothing; over distinct rows where not every row counts."""
    if every:
        return Threshold(_plus(left, Negate(right), ids))
    return Threshold(_plus(Distinct(left), Negate(Distinct(right)), ids))


def _intersect(left: Node, right: Node, every: bool, ids: Ids) -> Node:
    """L - (L - R)."""
    a, b = (left, right) if every else (Distinct(left), Distinct(right))
    return Threshold(_plus(a, Negate(Threshold(_plus(a, Negate(b), ids))), ids))


def _plus(left: Node, right: Node, ids: Ids) -> Node:
    return Union((left, right), tuple(ids.new() for _ in left.columns))


def _only(block: Block) -> Node:
    """The plan with exactly the block's columns, in their order."""
    wanted: tuple[Id, ...] = tuple(column.id for column in block.columns)
    if wanted == block.plan.columns:
        return block.plan
    fresh = Ids()
    seen: set[Id] = set()
    outputs = []
    for id in wanted:
        outputs.append((id if id not in seen else f"{id}_{fresh.new()}", Expr.column(id)))
        seen.add(id)
    return Map(block.plan, tuple(outputs))


def _fallback(
    text: str, keys: tuple[str, ...], schema: Schema, environment: Environment, reason: str, temporal: bool
) -> Fallback:
    operands = [environment.get(key) for key in keys]
    names = tuple(tuple(column.name for column in columns) for _, columns in operands)
    ids = tuple(environment.ids.new() for _ in schema)
    return Fallback(text, tuple(get for get, _ in operands), names, ids, reason, temporal)


def _block_text(tree: exp.Expression, environment: Environment) -> tuple[str, tuple[str, ...]]:
    """The block with the CTEs that it sees in front."""
    tree = tree.copy()
    names = {table.name.lower() for table in tree.find_all(exp.Table) if len(table.parts) == 1}
    needed: list[exp.CTE] = []
    for name, (cte, _) in reversed(list(environment.ctes.items())):
        if name in names:
            needed.insert(0, cte.copy())
            names |= {table.name.lower() for table in cte.find_all(exp.Table) if len(table.parts) == 1}
    own = tree.args.get("with_")
    if needed:
        if own is not None:
            needed += own.expressions
        tree.set("with_", exp.With(expressions=needed, recursive=bool(own and own.recursive)))
    return block_template(tree)
