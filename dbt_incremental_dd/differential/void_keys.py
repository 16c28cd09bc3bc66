"""Keys of type VOID, such as those of ``SELECT NULL AS n``, become keys of a type that joins can compare.

    Reduce(x, by n, [...])    ->    Map(Reduce(Map(x, [*, m: CAST(NULL AS BOOLEAN)]), by m, [...]), [n: NULL, ...])

All their values are NULL, and so equal. But rows are looked up by ``<=>``, and a Spark join by columns of type VOID
finds no row: it replaces NULL by the type's default value, which is NULL again, and compares by ``=``.
"""

from __future__ import annotations

from dataclasses import replace

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import VOID, Type
from dbt_incremental_dd.differential.state import Types
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Distinct, Join, Map, OuterJoin, Reduce, SemiJoin, Threshold, TopK, Window

_NULL = Expr("NULL")
_TYPED = Expr("CAST(NULL AS BOOLEAN)")


def with_typed_keys(node: Node, types: Types) -> Node:
    """A plan of the same rows whose operator has no keys of type VOID; ``node`` itself where it has none. Raises what
    ``types`` raises."""
    match node:
        case Reduce() | Window() | TopK():
            return _keyed(node, _void(types, node.input)) if node.keys else node
        case Distinct() | Threshold():
            return _whole_rows(node, _void(types, node.input))
        case Join() | OuterJoin() | SemiJoin():
            return _tied(node, types)
    return node


def _void(types: Types, node: Node) -> frozenset[Id]:
    return frozenset(column.name for column in types.of(node) if column.type == VOID)


def _keyed(node: Reduce | Window | TopK, void: frozenset[Id]) -> Node:
    typed = {id: f"{id}_void" for id in node.keys if id in void}
    if not typed:
        return node
    itself = ((id, Expr.column(id)) for id in node.input.columns)
    source = Map(node.input, (*itself, *((id, _TYPED) for id in typed.values())))
    keys = tuple(typed.get(key, key) for key in node.keys)
    return _with(_NULL, void, replace(node, input=source, keys=keys), node.columns)


def _whole_rows(node: Distinct | Threshold, void: frozenset[Id]) -> Node:
    if not void:
        return node
    source = _with(_TYPED, void, node.input, node.columns)
    return _with(_NULL, void, replace(node, input=source), node.columns)


def _with(value: Expr, void: frozenset[Id], node: Node, columns: tuple[Id, ...]) -> Map:
    """These columns of the node's, with ``value`` for those of type VOID."""
    return Map(node, tuple((id, value if id in void else Expr.column(id)) for id in columns))


def _tied(node: Join | OuterJoin | SemiJoin, types: Types) -> Node:
    """``a <=> b`` of two such values is true."""
    conjuncts = [conjunct for predicate in node.on for conjunct in predicate.conjuncts()]
    if not any(map(_null_safe, conjuncts)):
        return node
    schema = Schema(tuple(column for child in node.inputs for column in types.of(child)))
    known = {column.name: column.type for column in schema}

    def type_of(side: Expr) -> Type:
        return known[side.as_column] if side.as_column else types.of_expression(side, schema)

    kept = tuple(c for c in conjuncts if {VOID} != {type_of(side) for side in _null_safe(c)})
    return node if len(kept) == len(conjuncts) else replace(node, on=kept)


def _null_safe(conjunct: Expr) -> tuple[Expr, ...]:
    """Both sides of ``a <=> b``; none of another condition."""
    sides = conjunct.equality_sides()
    return sides[:2] if sides is not None and sides[2] else ()
