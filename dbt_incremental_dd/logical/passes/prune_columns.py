"""Leaves out columns that nobody reads, down to the collections.

    Map(Join(Get(a: x, y), Get(b: x, z)), [y])    ->    Map(Join(Get(a: x, y), Get(b: x)), [y])

Requires nothing. Establishes: a Get reads only columns that the plan uses. An operator that several read keeps what
any of them wants. Operators over whole rows (Distinct, Threshold, Negate, set operations, TopK by its ties) keep all
of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Filter, FlatMap, Get, Join, Map, OuterJoin, Reduce, SemiJoin, Union, Window

Ids = frozenset[Id]


def prune_columns(plan: Node) -> Node:
    """The plan with the same columns on top, and as few as possible below."""
    nodes = each_once(plan)
    wanted: dict[int, Ids] = {id(plan): frozenset(plan.columns)}
    for node in reversed(nodes):
        for child, needed in zip(node.inputs, _needed(node, wanted[id(node)]), strict=True):
            wanted[id(child)] = wanted.get(id(child), frozenset()) | (needed & frozenset(child.columns))
    made: dict[int, Node] = {}
    for node in nodes:
        made[id(node)] = _with_less(node, wanted[id(node)], tuple(made[id(child)] for child in node.inputs))
    return _exactly(made[id(plan)], plan.columns)


def _exactly(node: Node, columns: tuple[Id, ...]) -> Node:
    return node if node.columns == columns else Map(node, tuple((id, Expr.column(id)) for id in columns))


def _refs(exprs: Iterable[Expr]) -> Ids:
    return frozenset(ref for expr in exprs for ref in expr.refs)


def _needed(node: Node, wanted: Ids) -> tuple[Ids, ...]:
    """For each input the columns that it must have, others perhaps among them."""
    match node:
        case Map() | Reduce():
            node = _with_outputs(node, wanted)
            exprs = (expr for _, expr in node.outputs) if isinstance(node, Map) else (a.sql for a in node.aggregates)
            return (_refs(exprs) | frozenset(node.keys if isinstance(node, Reduce) else ()),)
        case Filter():
            return (wanted | node.predicate.refs,)
        case FlatMap():
            return (wanted | node.generator.refs,)
        case Join() | OuterJoin() | SemiJoin():
            return (wanted | _refs(node.on),) * len(node.inputs)
        case Window():
            functions = _functions(node, wanted)
            return (wanted | _refs(f for _, f in functions) | frozenset(node.keys if functions else ()),)
        case Union():
            kept = _kept(node, wanted)
            return tuple(frozenset(operand.columns[i] for i in kept) for operand in node.operands)
    # Operators over whole rows: all columns are theirs.
    return tuple(frozenset(child.columns) for child in node.inputs)


def _with_less(node: Node, wanted: Ids, inputs: tuple[Node, ...]) -> Node:
    """The operator over pruned inputs, without outputs that nobody wants."""
    match node:
        case Get():
            outputs = tuple(output for output in node.outputs if output[0] in wanted)
            return Get(node.collection, outputs or node.outputs[:1])
        case Map() | Reduce():
            return _with_outputs(node, wanted).with_inputs(inputs)
        case Window():
            functions = _functions(node, wanted)
            return Window(inputs[0], node.keys, functions) if functions else inputs[0]
        case Union():
            kept = _kept(node, wanted)
            sides = zip(inputs, node.operands, strict=True)
            operands = tuple(_exactly(made, tuple(operand.columns[i] for i in kept)) for made, operand in sides)
            return Union(operands, tuple(node.ids[i] for i in kept), node.widens)
        case Filter() | FlatMap() | Join() | OuterJoin() | SemiJoin():
            return node.with_inputs(inputs)
    whole = (_exactly(made, child.columns) for made, child in zip(inputs, node.inputs, strict=True))
    return node.with_inputs(tuple(whole))


def _with_outputs(node: Map | Reduce, wanted: Ids) -> Map | Reduce:
    """Without computed columns that are not wanted; one stays where there would be none."""
    if isinstance(node, Map):
        return Map(node.input, tuple(o for o in node.outputs if o[0] in wanted) or node.outputs[:1])
    aggregates = tuple(a for a in node.aggregates if a.id in wanted)
    if not node.keys and not aggregates:
        aggregates = node.aggregates[:1]
    return Reduce(node.input, node.keys, aggregates, node.global_row)


def _functions(node: Window, wanted: Ids) -> tuple[tuple[Id, Expr], ...]:
    return tuple(f for f in node.functions if f[0] in wanted)


def _kept(node: Union, wanted: Ids) -> list[int]:
    return [i for i, id in enumerate(node.ids) if id in wanted] or [0]
