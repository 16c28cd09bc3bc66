"""Leaves out columns that nobody reads, down to the collections.

    Map(Join(Get(a: x, y), Get(b: x, z)), [y])    ->    Map(Join(Get(a: x, y), Get(b: x)), [y])

Requires nothing. Establishes: a Get reads only columns that the plan uses. Operators over whole rows (Distinct,
Threshold, Negate, set operations, TopK by its ties) keep all of theirs.
"""

from __future__ import annotations

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import (
    Filter,
    FlatMap,
    Get,
    Id,
    Join,
    Map,
    Node,
    OuterJoin,
    Reduce,
    SemiJoin,
    Union,
    Window,
)


def prune_columns(plan: Node) -> Node:
    """The plan with the same columns on top, and as few as possible below."""
    return _exactly(_prune(plan, frozenset(plan.columns)), plan.columns)


def _exactly(node: Node, columns: tuple[Id, ...]) -> Node:
    return node if node.columns == columns else Map(node, tuple((id, Expr.column(id)) for id in columns))


def _prune(node: Node, wanted: frozenset[Id]) -> Node:
    match node:
        case Get():
            outputs = tuple(output for output in node.outputs if output[0] in wanted)
            return Get(node.collection, outputs or node.outputs[:1])
        case Map():
            outputs_ = tuple(o for o in node.outputs if o[0] in wanted) or node.outputs[:1]
            refs = frozenset(ref for _, expr in outputs_ for ref in expr.refs)
            return Map(_prune(node.input, refs), outputs_)
        case Filter():
            return Filter(_prune(node.input, wanted | node.predicate.refs), node.predicate)
        case FlatMap():
            below = _prune(node.input, (wanted | node.generator.refs) & frozenset(node.input.columns))
            return node.with_inputs((below,))
        case Join():
            needed = wanted.union(*(predicate.refs for predicate in node.on))
            return node.with_inputs(tuple(_prune(o, needed & frozenset(o.columns)) for o in node.operands))
        case OuterJoin() | SemiJoin():
            needed = wanted.union(*(predicate.refs for predicate in node.on))
            sides = (node.left, node.right)
            return node.with_inputs(tuple(_prune(side, needed & frozenset(side.columns)) for side in sides))
        case Reduce():
            return _prune_reduce(node, wanted)
        case Window():
            functions = tuple(f for f in node.functions if f[0] in wanted)
            if not functions:
                return _prune(node.input, wanted)
            refs = frozenset(ref for _, expr in functions for ref in expr.refs)
            needed = (wanted | refs | frozenset(node.keys)) & frozenset(node.input.columns)
            return Window(_prune(node.input, needed), node.keys, functions)
        case Union():
            return _prune_union(node, wanted)
    # Operators over whole rows: all columns are theirs.
    inputs = (_exactly(_prune(child, frozenset(child.columns)), child.columns) for child in node.inputs)
    return node.with_inputs(tuple(inputs))


def _prune_reduce(node: Reduce, wanted: frozenset[Id]) -> Node:
    aggregates = tuple(a for a in node.aggregates if a.id in wanted)
    if not node.keys and not aggregates:
        aggregates = node.aggregates[:1]
    refs = frozenset(ref for a in aggregates for ref in a.sql.refs) | frozenset(node.keys)
    return Reduce(_prune(node.input, refs), node.keys, aggregates, node.global_row)


def _prune_union(node: Union, wanted: frozenset[Id]) -> Node:
    kept = [i for i, id in enumerate(node.ids) if id in wanted] or [0]
    operands = []
    for operand in node.operands:
        columns = tuple(operand.columns[i] for i in kept)
        operands.append(_exactly(_prune(operand, frozenset(columns)), columns))
    return Union(tuple(operands), tuple(node.ids[i] for i in kept), node.widens)
