"""VALUES as the union of its rows."""

from __future__ import annotations

from sqlglot import exp

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Block, Environment
from dbt_incremental_dd.frontend.resolve import resolve
from dbt_incremental_dd.frontend.scope import Named
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Constant, Map, Union

_MOST_ROWS = 50
"""Of a table that is part of the plan; Spark makes a longer one."""


def inline_table(tree: exp.Values, environment: Environment) -> Block | None:
    """The rows, in columns ``col1``, ``col2`` and so on; None where only Spark knows what they are."""
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in tree.expressions]
    if len(rows) > _MOST_ROWS or len({len(row) for row in rows}) != 1:
        return None
    try:
        sides = [_row(row, environment) for row in rows]
    except UnsupportedSQL:
        return None
    plan: Node = sides[0]
    if len(sides) > 1:
        plan = Union(tuple(sides), tuple(environment.ids.new() for _ in rows[0]))
    known = environment.types_of(plan)
    if known is None:
        return None
    environment.types.update((column.name, column.type) for column in known)
    return Block(plan, tuple(Named(f"col{number}", id) for number, id in enumerate(plan.columns, start=1)))


def _row(items: list[exp.Expr], environment: Environment) -> Map:
    values = (Expr.of(resolve(item, lambda parts: None)) for item in items)
    one = Constant.one_row(environment.ids.new())
    return Map(one, tuple((environment.ids.new(), value) for value in values))
