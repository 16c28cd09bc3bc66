"""Opens an operand of a join that is a cross product which the join itself ties together.

    Join(SemiJoin(Join(a, b), s, on p), c, on a.x = c.x AND b.y = c.y)
        ->    SemiJoin(Join(Join(a, b), c, on a.x = c.x AND b.y = c.y), s, on p)

What stands between the two joins (semi and left joins, filters over what these add, maps) comes to stand over both.
Where a subquery is computed for values of the cross product, it is for those of both joins' rows.
Requires: filters are pushed down, and a subquery's domain reads the node that it is joined to (push_filters).
Establishes: no Join that nothing ties together lies below one that does, other operators than these apart.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import bottom_up
from dbt_incremental_dd.logical.joins import components
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Filter, Join, Map, OuterJoin, SemiJoin


def connect_joins(plan: Node) -> Node:
    """The plan with as few cross products as its equalities allow."""
    return bottom_up(plan, _connected)


def _connected(node: Node) -> Node:
    if not isinstance(node, Join):
        return node
    for i, operand in enumerate(node.operands):
        layers, core = _layers(operand)
        if layers and core is not None and _ties(node, operand, layers, core):
            return _opened(node, i, layers, core)
    return node


def _layers(node: Node) -> tuple[list[Node], Join | None]:
    """What stands over the Join that an operand's rows come from, the outermost first; and that, if it is untied."""
    layers: list[Node] = []
    while isinstance(node, Map | Filter | SemiJoin) or (isinstance(node, OuterJoin) and node.kind == "left"):
        layers.append(node)
        node = node.inputs[0]
    return layers, node if isinstance(node, Join) and len(components(node)) > 1 else None


def _ties(node: Join, operand: Node, layers: list[Node], core: Join) -> bool:
    """Whether the outer join makes fewer groups of all operands than both joins do by themselves."""
    names = _substitution(layers)
    outer = tuple(predicate.substitute(names) for predicate in node.on)
    others = tuple(other for other in node.operands if other is not operand)
    whole = Join((*core.operands, *others), _over(core.columns, others, (*core.on, *outer)))
    return len(components(whole)) < len(components(core)) + len(others)


def _over(columns: tuple[Id, ...], others: tuple[Node, ...], predicates: tuple[Expr, ...]) -> tuple[Expr, ...]:
    known = set(columns) | {id for other in others for id in other.columns}
    return tuple(predicate for predicate in predicates if predicate.refs <= known)


def _substitution(layers: list[Node]) -> Mapping[Id, Expr]:
    """The columns of the outermost layer, over those below all layers."""
    names: dict[Id, Expr] = {}
    for layer in reversed(layers):
        if isinstance(layer, Map):
            names = {**names, **{id: expr.substitute(names) for id, expr in layer.outputs if expr.sql != id}}
    return names


def _opened(node: Join, at: int, layers: list[Node], core: Join) -> Node:
    """The layers over the join of the core with the other operands."""
    names = _substitution(layers)
    on = tuple(predicate.substitute(names) for predicate in node.on)
    operands = (*node.operands[:at], core, *node.operands[at + 1 :])
    ready = tuple(p for p in on if p.refs <= {id for operand in operands for id in operand.columns})
    made: Node = Join(operands, ready)
    replaced: dict[int, Node] = {id(core): made}
    for layer in reversed(layers):
        match layer:
            case Map():
                computed = tuple(output for output in layer.outputs if output[1].sql != output[0])
                made = Map(made, (*((id, Expr.column(id)) for id in made.columns), *computed)) if computed else made
            case Filter():
                made = Filter(made, layer.predicate)
            case OuterJoin() | SemiJoin():
                made = layer.with_inputs((made, _reading(layer.right, replaced)))
        replaced[id(layer)] = made
    for predicate in node.on:
        if predicate.substitute(names) not in ready:
            made = Filter(made, predicate)
    return Map(made, tuple((id, Expr.column(id)) for id in node.columns))


def _reading(right: Node, replaced: Mapping[int, Node]) -> Node:
    """With the values that a subquery is computed for taken from what its left side has become."""
    if id(right) in replaced:
        return replaced[id(right)]
    return right.with_inputs(tuple(_reading(child, replaced) for child in right.inputs))
