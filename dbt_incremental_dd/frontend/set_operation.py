"""Set operations through sums of multisets, negated where they take away."""

from __future__ import annotations

from typing import TypeGuard

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.frontend.block import Block, Environment, LowerQuery, carrying, lowered
from dbt_incremental_dd.frontend.scope import Named
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Distinct, Map, Negate, Threshold, Union
from dbt_incremental_dd.logical.sql_types import sql_type


def lower_set_operation(tree: exp.SetOperation, environment: Environment, lower_query: LowerQuery) -> Block:
    """UNION, EXCEPT (MINUS) and INTERSECT, each of all rows or of distinct ones. The first side names the columns."""
    if tree.args.get("by_name"):
        raise UnsupportedSQL("UNION BY NAME")
    every = tree.args.get("distinct") is False
    trees = _chain(tree) if every and isinstance(tree, exp.Union) else [tree.left, tree.right]
    is_ordered = tree.args.get("order") is not None  # by its columns' names; others ask for these themselves
    needs = [is_ordered, *(False for _ in trees[1:])]
    blocks = [
        carrying(lowered(side, environment, lower_query, names=names), environment)
        for side, names in zip(trees, needs, strict=True)
    ]
    sides = [block.only for block in blocks]
    if len({len(side.columns) for side in sides}) > 1:
        raise UnsupportedSQL("a set operation over different numbers of columns")
    types = _types(trees, blocks, environment)
    alike = types is not None and len(set(types)) == 1
    if isinstance(tree, exp.Union):
        plan = _plus(sides, environment, alike=alike)
        plan = plan if every else Distinct(plan)
    else:
        if not alike:
            sides = _cast_alike(sides, tree, environment)
        a, b = (side if every else Distinct(side) for side in sides)
        combine = _except if isinstance(tree, exp.Except) else _intersect
        plan = combine(a, b, environment)
    carried = len(blocks[0].carried)
    if types is not None and alike:
        environment.types.update(zip(plan.columns[carried:], types[0], strict=True))
    named = zip(blocks[0].columns, plan.columns[carried:], strict=True)
    return Block(plan, tuple(Named(c.name, id) for c, id in named), plan.columns[:carried])


def _cast_alike(sides: list[Node], tree: exp.SetOperation, environment: Environment) -> list[Node]:
    """The sides with the types that Spark gives both."""
    schema = environment.shape(tree)
    made: list[Node] = []
    for side in sides:
        casts = (Expr(f"CAST({id} AS {sql_type(c.type)})") for id, c in zip(side.columns, schema, strict=True))
        made.append(Map(side, tuple((environment.ids.new(), cast) for cast in casts)))
    return made


def _except(left: Node, right: Node, environment: Environment) -> Node:
    """L - R, where that is positive."""
    return Threshold(_plus([left, Negate(right)], environment, alike=True))


def _intersect(left: Node, right: Node, environment: Environment) -> Node:
    """L - (L - R)."""
    return Threshold(_plus([left, Negate(_except(left, right, environment))], environment, alike=True))


def _plus(sides: list[Node], environment: Environment, *, alike: bool) -> Node:
    return Union(tuple(sides), tuple(environment.ids.new() for _ in sides[0].columns), widens=not alike)


def _chain(tree: exp.SetOperation) -> list[exp.Expr]:
    """The operands of a chain of UNION ALL."""
    return [operand for side in (tree.left, tree.right) for operand in (_chain(side) if _goes_on(side) else [side])]


def _goes_on(side: exp.Expr) -> TypeGuard[exp.Union]:
    if not isinstance(side, exp.Union) or side.args.get("distinct") is not False or side.args.get("by_name"):
        return False
    return not any(side.args.get(clause) for clause in ("with_", "order", "limit", "offset"))


def _types(trees: list[exp.Expr], blocks: list[Block], environment: Environment) -> list[tuple[Type, ...]] | None:
    """The types of each side's columns; None for correlated sides that the driver does not know, as Spark cannot."""
    try:
        return [_types_of(tree, block, environment) for tree, block in zip(trees, blocks, strict=True)]
    except UnsupportedSQL:
        if environment.outer is None:
            raise
        return None


def _types_of(tree: exp.Expr, block: Block, environment: Environment) -> tuple[Type, ...]:
    ids = tuple(column.id for column in block.columns)
    if all(id in environment.types for id in ids):
        return tuple(environment.types[id] for id in ids)
    known = environment.types_of(block.plan)
    if known is not None:
        return tuple(column.type for column in known.select(ids))
    return tuple(column.type for column in environment.shape(tree))
