"""From a logical plan to a differential one: bottom up, one decision for each operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.differential.groups import Recompute, TopGroups, WindowGroups
from dbt_incremental_dd.differential.join import DeltaJoin
from dbt_incremental_dd.differential.outer_join import plan_outer_join, plan_semi_join
from dbt_incremental_dd.differential.recursion import plan_fixpoint
from dbt_incremental_dd.differential.reduce import plan_distinct, plan_reduce, plan_threshold
from dbt_incremental_dd.differential.state import Names, OutputState, State, Types
from dbt_incremental_dd.differential.temporal import is_temporal
from dbt_incremental_dd.differential.top import plan_kept_top
from dbt_incremental_dd.differential.typed import arg_types, casts, sql_types, tie_breakers
from dbt_incremental_dd.differential.window import with_ties
from dbt_incremental_dd.differential.window_append import NUMBER, plan_growth
from dbt_incremental_dd.logical import nodes as logical
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Map, Union
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
        self._types = types
        self._names = names
        self._output = output
        self._lowered: dict[int, Node] = {}

    def lower(self, node: Node) -> Node:
        """The differential form of ``node`` and all below it; of one that several read, one."""
        if id(node) not in self._lowered:
            self._lowered[id(node)] = self._lower(node)
        return self._lowered[id(node)]

    def _lower(self, node: Node) -> Node:
        rule: Callable[[_Lowering, Node], Node] | None = _RULES.get(type(node))
        if rule is None:
            return node.with_inputs(tuple(self.lower(child) for child in node.inputs))
        return rule(self, node)

    def stored_as_output(self, node: Node) -> OutputState | None:
        """Where the operator's former output can be read, if it is the model's own."""
        return self._output[1] if self._output and self._output[0] is node else None

    def _join(self, node: Node) -> Node:
        assert isinstance(node, logical.Join)
        return DeltaJoin(tuple(self.lower(operand) for operand in node.operands), node.on)

    def _outer_join(self, node: Node) -> Node:
        assert isinstance(node, logical.OuterJoin)
        lowered = node.with_inputs((self.lower(node.left), self.lower(node.right)))
        assert isinstance(lowered, logical.OuterJoin)
        return plan_outer_join(lowered, dict(sql_types(self._types, node.left, node.right)))

    def _semi_join(self, node: Node) -> Node:
        assert isinstance(node, logical.SemiJoin)
        lowered = node.with_inputs((self.lower(node.left), self.lower(node.right)))
        assert isinstance(lowered, logical.SemiJoin)
        return plan_semi_join(lowered, dict(sql_types(self._types, node.left, node.right)))

    def _reduce(self, node: Node) -> Node:
        assert isinstance(node, logical.Reduce)
        source = self.lower(node.input)
        arg_type = arg_types(self._types, node.input)
        return plan_reduce(
            node,
            source,
            sql_types(self._types, node.input),
            arg_types=arg_type,
            names=self._names,
            output=self.stored_as_output(node),
        )

    def _distinct(self, node: Node) -> Node:
        assert isinstance(node, logical.Distinct)
        return plan_distinct(self.lower(node.input), self._names)

    def _threshold(self, node: Node) -> Node:
        assert isinstance(node, logical.Threshold)
        return plan_threshold(self.lower(node.input), self._names)

    def _top_k(self, node: Node) -> Node:
        assert isinstance(node, logical.TopK)
        ties = tie_breakers(self._types, node.input)
        source = self.lower(node.input)
        kept = plan_kept_top(node, source, ties, self._names)
        if kept is not None:
            return kept
        old = self.stored_as_output(node) or State(self._names.new("top"), node.columns, node.keys)
        return TopGroups(source, node.keys, node.order, ties=ties, limit=node.limit, offset=node.offset, old=old)

    def _window(self, node: Node) -> Node:
        assert isinstance(node, logical.Window)
        name = self._names.new("window")
        old = self.stored_as_output(node) or State(name, node.columns, node.keys)
        ties = tie_breakers(self._types, node.input)
        functions = tuple((id, with_ties(function, ties)) for id, function in node.functions)
        growth = plan_growth(functions, {column.name: column.type for column in self._types.of(node)})
        tail = State(f"{name}.tail", (*node.columns, NUMBER), node.keys) if growth else None
        return WindowGroups(self.lower(node.input), node.keys, functions, old=old, growth=growth, tail=tail)

    def _union(self, node: Node) -> Node:
        """Casts each operand to the common type, so that one operand's delta can stand alone."""
        assert isinstance(node, Union)
        common = self._types.of(node)
        return Union(tuple(self._cast(operand, common) for operand in node.operands), node.ids)

    def _cast(self, operand: Node, common: Schema) -> Node:
        outputs = casts(self._types, operand, common)
        lowered = self.lower(operand)
        return lowered if all(expr.as_column for _, expr in outputs) else Map(lowered, outputs)

    def _fallback(self, node: Node) -> Node:
        assert isinstance(node, logical.Fallback)
        old = self.stored_as_output(node) or State(self._names.new("recompute"), node.columns, ())
        operands = tuple(self.lower(operand) for operand in node.operands)
        types = tuple(sql_types(self._types, operand) for operand in node.operands)
        return Recompute(
            node.sql,
            operands,
            node.names,
            ids=node.ids,
            reason=node.reason,
            temporal=node.temporal,
            operand_types=types,
            old=old,
        )

    def _fixpoint(self, node: Node) -> Node:
        assert isinstance(node, Fixpoint)
        return plan_fixpoint(node, self._types, self._names, self.lower)


_RULES: dict[type[Node], Callable[[_Lowering, Node], Node]] = {
    logical.Join: _Lowering._join,
    logical.OuterJoin: _Lowering._outer_join,
    logical.SemiJoin: _Lowering._semi_join,
    logical.Reduce: _Lowering._reduce,
    logical.Distinct: _Lowering._distinct,
    logical.Threshold: _Lowering._threshold,
    logical.TopK: _Lowering._top_k,
    logical.Window: _Lowering._window,
    logical.Union: _Lowering._union,
    logical.Fallback: _Lowering._fallback,
    Fixpoint: _Lowering._fixpoint,
}
