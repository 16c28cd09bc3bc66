"""Lowering a whole query, or a block of one; a block that is not understood is kept as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.frontend.block import Analyze, Block, Environment, Input, TypesOf, closed, lowered, unknown
from dbt_incremental_dd.frontend.inline_table import inline_table
from dbt_incremental_dd.frontend.order import limited
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.frontend.reason import named, readable
from dbt_incremental_dd.frontend.recursion import with_recursive
from dbt_incremental_dd.frontend.relations import base_tables
from dbt_incremental_dd.frontend.resolve import in_scope
from dbt_incremental_dd.frontend.scope import Ids, Named, Scope, Source
from dbt_incremental_dd.frontend.select import lower_select
from dbt_incremental_dd.frontend.set_operation import lower_set_operation
from dbt_incremental_dd.frontend.template import template
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Constant, Fallback
from dbt_incremental_dd.logical.now import uses_now


@dataclass(frozen=True)
class Query:
    """A lowered query: ``names`` are its columns' names, parallel to ``plan.columns``."""

    plan: Node
    names: tuple[str, ...]


def lower(
    query: ParsedQuery,
    inputs: Mapping[str, Input],
    output: Schema,
    analyze: Analyze,
    types_of: TypesOf = unknown,
) -> Query:
    """The plan of a whole query, whose columns Spark says are ``output``.

    Never fails for a query that parses: what has no plan of its own becomes a Fallback.
    """
    try:
        block = _block(query, Environment(inputs, analyze, Ids(), types_of=types_of))
    except UnsupportedSQL as error:
        return whole(query, inputs, output, error.construct)
    if len(block.columns) != len(output):
        return whole(query, inputs, output, f"{_UNFORESEEN} (it has {len(block.columns)} columns)")
    return Query(block.only, output.names)


def lower_alone(
    query: ParsedQuery,
    inputs: Mapping[str, Input],
    analyze: Analyze,
    types_of: TypesOf = unknown,
    *,
    spells_out: bool = False,
) -> Query:
    """The plan of a query that Spark is not asked about as a whole. ``spells_out``: see ``Environment``. Raises
    UnsupportedSQL where there is none."""
    block = _block(query, Environment(inputs, analyze, Ids(), types_of=types_of, spells_out=spells_out))
    return Query(block.only, tuple(column.name for column in block.columns))


def _block(query: ParsedQuery, environment: Environment) -> Block:
    if query.uses_pipes:
        raise UnsupportedSQL("pipe syntax |>")
    try:
        tree = query.tree
        if tree.find(exp.Collate) or any(str(call.this).lower() == "collate" for call in tree.find_all(exp.Anonymous)):
            raise UnsupportedSQL("COLLATE")
        return _lower(tree, environment)
    except UnsupportedSQL:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, SqlglotError, TypeError, ValueError) as error:
        raise UnsupportedSQL(f"{_UNFORESEEN} ({readable(error)})", "Write it more simply.") from error


_UNFORESEEN = "its plan could not be made"


def whole(query: ParsedQuery, inputs: Mapping[str, Input], output: Schema, reason: str) -> Query:
    """The query as one Fallback over its base relations."""
    text, keys = template(query, inputs)
    environment = Environment(inputs, lambda *_: output, Ids())
    return Query(_fallback(text, keys, output, environment, reason), output.names)


def lower_query(tree: exp.Expr, environment: Environment, *, names: bool = True) -> Block:
    """A block inside a query, as ``LowerQuery`` says. One that has no plan is kept as text, if Spark can tell its
    columns.

    Raises UnsupportedSQL where it cannot, for example because the block refers to what is outside of it. One that is
    for each value of the outside is never kept as text.
    """
    block = _understood(tree, environment)
    if not names or environment.outer is not None or all(column.name for column in block.columns):
        return block
    return _named(block, tree, environment)


def _understood(tree: exp.Expr, environment: Environment) -> Block:
    """By its own plan or as text."""
    if environment.outer is not None:
        return _lower(tree, environment)
    try:
        return _lower(tree, environment)
    except UnsupportedSQL as error:
        reason = error.construct
    schema = environment.shape(tree)
    text, keys = environment.text(tree)
    node = _fallback(text, keys, schema, environment, reason)
    return Block(node, tuple(Named(name, id) for name, id in zip(schema.names, node.columns, strict=True)))


def _named(block: Block, tree: exp.Expr, environment: Environment) -> Block:
    """Columns without a name of their own get the one that Spark gives them."""
    names = environment.shape(tree).names
    if len(names) != len(block.columns):
        raise UnsupportedSQL("its columns cannot be counted")
    return Block(block.plan, tuple(replace(c, name=name) for c, name in zip(block.columns, names, strict=True)))


def _lower(tree: exp.Expr, environment: Environment) -> Block:
    with_ = tree.args.get("with_")
    if with_ is not None and with_.recursive:
        return _recursive(tree, environment)
    inner = environment.with_ctes(with_)
    if isinstance(tree, exp.Subquery):
        return _limited(tree, lowered(tree.this, inner, lower_query))
    if isinstance(tree, exp.SetOperation):
        return _limited(tree, lower_set_operation(tree, inner, lower_query))
    if inner.outer is None and _is_constant(tree, inner):
        found = _selected(tree, inner)
        if found is not None or not inner.spells_out:
            return found or _constant(tree, inner)
    if isinstance(tree, exp.Select):
        return lower_select(tree, inner, lower_query)
    raise UnsupportedSQL(named(tree))


def _selected(tree: exp.Expr, environment: Environment) -> Block | None:
    """VALUES, or a SELECT without FROM, computed from one row; None for what only Spark makes."""
    if isinstance(tree, exp.Values):
        return inline_table(tree, environment)
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is not None:
        return None
    try:
        return lower_select(tree, environment, lower_query)
    except UnsupportedSQL:
        return None


def _recursive(tree: exp.Expr, environment: Environment) -> Block:
    """A query whose WITH is recursive: without it, in the environment that it makes."""
    inner = with_recursive(environment, tree, lower_query)
    rest = tree.copy()
    rest.set("with_", None)
    block = _lower(rest, inner)
    return block if all(column.name for column in block.columns) else _named(block, rest, inner)


def _is_constant(tree: exp.Expr, environment: Environment) -> bool:
    """Whether the block, with the CTEs that it reads, reads nothing at all, not even the time."""
    whole = closed(tree, environment)
    if any(str(call.this).lower() == "dd_now" for call in whole.find_all(exp.Anonymous)):
        return False
    return not any(True for _ in base_tables(whole))


def _constant(tree: exp.Expr, environment: Environment) -> Block:
    schema = environment.shape(tree)
    text, _ = environment.text(tree)
    columns = tuple(Named(name, environment.ids.new()) for name in schema.names)
    environment.types.update(zip((c.id for c in columns), (c.type for c in schema), strict=True))
    return Block(Constant(text.format(), tuple(column.id for column in columns)), columns)


def _limited(tree: exp.Expr, block: Block) -> Block:
    """ORDER BY and LIMIT of a set operation or a parenthesized query: over its output columns."""
    scope = Scope.of(Source((), block.columns))
    return Block(limited(tree, block, in_scope(scope)), block.columns, block.carried)


def _fallback(text: str, keys: tuple[str, ...], schema: Schema, environment: Environment, reason: str) -> Fallback:
    operands = [environment.get(key) for key in keys]
    names = tuple(tuple(column.name for column in columns) for _, columns in operands)
    ids = tuple(environment.ids.new() for _ in schema)
    environment.types.update(zip(ids, (c.type for c in schema), strict=True))
    return Fallback(text, tuple(get for get, _ in operands), names, ids=ids, reason=reason, temporal=uses_now(text))
