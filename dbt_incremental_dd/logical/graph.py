"""Plans as graphs, where one operator may be read by several. Operators are told apart by identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from dbt_incremental_dd.logical.node import Node

V = TypeVar("V")


class ByIdentity(Generic[V]):
    """A value of each operator that is asked for. It keeps the operators, because one that is made on the way and
    dropped leaves its identity to the next."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Node, V]] = {}

    def of(self, node: Node, make: Callable[[Node], V]) -> V:
        """The operator's value, made when it is first asked for."""
        if id(node) not in self._found:
            self._found[id(node)] = node, make(node)
        return self._found[id(node)][1]


def each_once(plan: Node) -> list[Node]:
    """All operators of a plan, inputs first; one that several read comes once."""
    found: dict[int, Node] = {}

    def visit(node: Node) -> None:
        if id(node) not in found:
            for child in node.inputs:
                visit(child)
            found[id(node)] = node

    visit(plan)
    return list(found.values())


def by_single_rows(plan: Node) -> set[int]:
    """Identities of the operators that only look at single rows of collections: cheap to compute once more."""
    found: set[int] = set()
    for node in each_once(plan):
        if node.by_rows and all(id(child) in found for child in node.inputs):
            found.add(id(node))
    return found


def bottom_up(plan: Node, rule: Callable[[Node], Node]) -> Node:
    """The plan with each operator replaced by what ``rule`` makes of it over its replaced inputs; a shared one once."""
    made: dict[int, Node] = {}
    for node in each_once(plan):
        made[id(node)] = rule(node.with_inputs(tuple(made[id(child)] for child in node.inputs)))
    return made[id(plan)]
