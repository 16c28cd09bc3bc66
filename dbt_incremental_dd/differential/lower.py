"""From a logical plan to a differential one: bottom up, one decision for each operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from dbt_incremental_dd.differential import rules
from dbt_incremental_dd.differential.comparable_keys import with_comparable_keys
from dbt_incremental_dd.differential.groups import Recompute
from dbt_incremental_dd.differential.lowering import Rule
from dbt_incremental_dd.differential.state import Names, OutputState, Types
from dbt_incremental_dd.differential.temporal import is_temporal
from dbt_incremental_dd.logical import nodes as logical
from dbt_incremental_dd.logical.graph import ByIdentity, each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Map
from dbt_incremental_dd.logical.recursion import Fixpoint


@dataclass(frozen=True)
class DifferentialPlan:
    """The plan of one model: ``names`` are the output's column names, parallel to ``root.columns``."""

    root: Node
    names: tuple[str, ...]

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """Why parts of it are recomputed whole."""
        return tuple(dict.fromkeys(node.reason for node in each_once(self.root) if isinstance(node, Recompute)))

    @property
    def is_temporal(self) -> bool:
        """Whether its answer changes with time alone."""
        return any(_is_temporal(node) for node in each_once(self.root))


def _is_temporal(node: Node) -> bool:
    return node.temporal if isinstance(node, Recompute) else is_temporal(node)


def lower(root: Node, names: tuple[str, ...], types: Types, *, is_output: bool = True) -> DifferentialPlan:
    """Decides how ``root`` is maintained. ``is_output``: its rows are what the model stores, so that an operator need
    not store them too. Raises what ``types`` raises where Spark cannot type an expression."""
    lowering = _Lowering(types, Names(), _output_of(root, names) if is_output else None)
    return DifferentialPlan(lowering.lower(root), names)


def _output_of(root: Node, names: tuple[str, ...]) -> tuple[Node, OutputState] | None:
    """The operator whose output is the model's but for its columns' names and order, if there is one."""
    mapping = dict(zip(root.columns, names, strict=True))
    node = root
    while isinstance(node, Map):
        sources = [expr.as_column for _, expr in node.outputs]
        if None in sources or set(sources) != set(node.input.columns) or len(set(sources)) != len(sources):
            return None
        mapping = {str(expr.as_column): mapping[id] for id, expr in node.outputs}
        node = node.input
    return node, OutputState(tuple((id, mapping[id]) for id in node.columns))


class _Lowering:
    """One pass over a plan; ``names`` go to states in the order in which operators are met."""

    def __init__(self, types: Types, names: Names, output: tuple[Node, OutputState] | None) -> None:
        self.types = types
        self.names = names
        self._output = output
        self._lowered = ByIdentity[Node]()

    def lower(self, node: Node) -> Node:
        """The differential form of ``node`` and all below it; of one that several read, one."""
        return self._lowered.of(node, self._lower)

    def _lower(self, node: Node) -> Node:
        typed = with_comparable_keys(node, self.types)
        if typed is not node:
            return self.lower(typed)
        rule = _RULES.get(type(node))
        if rule is None:
            return node.with_inputs(tuple(self.lower(child) for child in node.inputs))
        return rule(node, self)

    def stored_as_output(self, node: Node) -> OutputState | None:
        """Where the operator's former output can be read, if it is the model's own."""
        return self._output[1] if self._output and self._output[0] is node else None


N = TypeVar("N", bound=Node)


def _of(kind: type[N], rule: Rule[N]) -> tuple[type[Node], Rule[Any]]:
    """The rule of nodes of a kind."""
    return kind, rule


_RULES = dict(
    (
        _of(logical.Join, rules.join),
        _of(logical.OuterJoin, rules.outer_join),
        _of(logical.SemiJoin, rules.semi_join),
        _of(logical.Reduce, rules.reduce),
        _of(logical.Distinct, rules.distinct),
        _of(logical.Threshold, rules.threshold),
        _of(logical.TopK, rules.top_k),
        _of(logical.Window, rules.window),
        _of(logical.Union, rules.union),
        _of(logical.Fallback, rules.fallback),
        _of(Fixpoint, rules.fixpoint),
    )
)
