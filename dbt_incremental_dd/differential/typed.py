"""What lowering asks of the types of a logical plan's columns."""

from __future__ import annotations

from collections.abc import Callable

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.differential.state import Types
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.sql_types import is_orderable, sql_type


def sql_types(types: Types, *nodes: Node) -> tuple[tuple[Id, str], ...]:
    """The nodes' columns with their types as SQL writes them."""
    return tuple((column.name, sql_type(column.type)) for node in nodes for column in types.of(node))


def tie_breakers(types: Types, node: Node) -> tuple[Id, ...]:
    """The columns that break ties: all that have an order."""
    return tuple(column.name for column in types.of(node) if is_orderable(column.type))


def arg_types(types: Types, node: Node) -> Callable[[Expr], Type]:
    """The types of expressions over the node's columns, each asked for once."""
    schema = types.of(node)
    memo: dict[str, Type] = {}

    def arg_type(expr: Expr) -> Type:
        if expr.sql not in memo:
            memo[expr.sql] = types.of_expression(expr, schema)
        return memo[expr.sql]

    return arg_type


def casts(types: Types, operand: Node, common: Schema) -> tuple[tuple[Id, Expr], ...]:
    """The operand's columns with the types of ``common``, which is of as many; those that have them keep their ids."""
    outputs = []
    for have, want in zip(types.of(operand), common, strict=True):
        same = have.type == want.type
        cast = Expr(f"CAST({have.name} AS {sql_type(want.type)})")
        outputs.append((have.name if same else f"{have.name}_u", Expr.column(have.name) if same else cast))
    return tuple(outputs)
