"""Keys that Spark's joins do not match become keys of a type that they match.

    Reduce(x, by m, [...])    ->    Map(Reduce(Map(x, [*, c: comparable(m)]), by c, [...]), [m: restored(c), ...])

Maps, also within arrays and structs, become their sorted entries (logical/equality.py). NULL of type VOID, as in
``SELECT NULL AS n``, becomes NULL of type BOOLEAN: a join by columns of type VOID replaces NULL by the type's default
value, which is NULL again, and compares by ``=``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import VOID, Type
from dbt_incremental_dd.differential.state import Types
from dbt_incremental_dd.logical.equality import comparable, is_restorable, restored
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Distinct, Join, Map, OuterJoin, Reduce, SemiJoin, Threshold, TopK, Window
from dbt_incremental_dd.logical.sql_types import is_orderable

_Odd = Mapping[Id, Type]
"""Columns that joins do not match, with their types."""


def with_comparable_keys(node: Node, types: Types) -> Node:
    """A plan of the same rows whose operator has only keys that joins match; ``node`` itself where it has no others.
    Raises what ``types`` raises."""
    match node:
        case Reduce() | Window() | TopK():
            return _keyed(node, _odd(types, node.input)) if node.keys else node
        case Distinct() | Threshold():
            return _whole_rows(node, _odd(types, node.input))
        case Join() | OuterJoin() | SemiJoin():
            return _tied(node, types)
    return node


def _odd(types: Types, node: Node) -> _Odd:
    return {column.name: column.type for column in types.of(node) if _is_odd(column.type)}


def _is_odd(type: Type) -> bool:
    return type == VOID or (not is_orderable(type) and is_restorable(type))


def _comparable(value: str, type: Type) -> Expr:
    return Expr("CAST(NULL AS BOOLEAN)" if type == VOID else comparable(value, type))


def _restored(value: str, type: Type) -> Expr:
    return Expr("NULL" if type == VOID else restored(value, type))


def _keyed(node: Reduce | Window | TopK, odd: _Odd) -> Node:
    made = {id: f"{id}_key" for id in node.keys if id in odd}
    if not made:
        return node
    itself = ((id, Expr.column(id)) for id in node.input.columns)
    source = Map(node.input, (*itself, *((key, _comparable(id, odd[id])) for id, key in made.items())))
    keyed = replace(node, input=source, keys=tuple(made.get(key, key) for key in node.keys))
    own = {id: _restored(key, odd[id]) for id, key in made.items()} if isinstance(node, Reduce) else {}
    return Map(keyed, tuple((id, own.get(id, Expr.column(id))) for id in node.columns))


def _whole_rows(node: Distinct | Threshold, odd: _Odd) -> Node:
    if not odd:
        return node
    source = _each(node.input, node.columns, odd, _comparable)
    return _each(replace(node, input=source), node.columns, odd, _restored)


def _each(node: Node, columns: tuple[Id, ...], odd: _Odd, made: Callable[[str, Type], Expr]) -> Map:
    """These columns of the node's, with something made of those that are odd."""
    return Map(node, tuple((id, made(id, odd[id]) if id in odd else Expr.column(id)) for id in columns))


def _tied(node: Join | OuterJoin | SemiJoin, types: Types) -> Node:
    """``a <=> b`` of two values of type VOID is true."""
    conjuncts = [conjunct for predicate in node.on for conjunct in predicate.conjuncts()]
    if not any(map(_null_safe, conjuncts)):
        return node
    schema = Schema(tuple(column for child in node.inputs for column in types.of(child)))
    known = {column.name: column.type for column in schema}

    def type_of(side: Expr) -> Type:
        return known[side.as_column] if side.as_column else types.of_expression(side, schema)

    made: list[Expr] = []
    for conjunct in conjuncts:
        sides = _null_safe(conjunct)
        found = {type_of(side) for side in sides}
        if found == {VOID}:
            continue
        odd = next((type for type in found if _is_odd(type)), None) if len(found) == 1 else None
        made.append(conjunct if odd is None else Expr(" <=> ".join(comparable(side.sql, odd) for side in sides)))
    return node if made == conjuncts else replace(node, on=tuple(made))


def _null_safe(conjunct: Expr) -> tuple[Expr, ...]:
    """Both sides of ``a <=> b``; none of another condition."""
    sides = conjunct.equality_sides()
    return sides[:2] if sides is not None and sides[2] else ()
