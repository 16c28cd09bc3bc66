"""From a Fixpoint to variables: one for each binding, and one for each operator in it that looks at groups of rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.differential.groups import RecomputeGroups, TopGroups, WindowGroups
from dbt_incremental_dd.differential.iterate import ITERATION, Iterate, Operand, Output, Reading, Variable
from dbt_incremental_dd.differential.join import DeltaJoin
from dbt_incremental_dd.differential.outer_join import plan_outer_join, plan_semi_join
from dbt_incremental_dd.differential.reduce import Accumulate, plan_distinct, plan_reduce, plan_threshold
from dbt_incremental_dd.differential.state import Names, State, Types
from dbt_incremental_dd.differential.typed import arg_types, casts, sql_types, tie_breakers
from dbt_incremental_dd.differential.window import with_ties
from dbt_incremental_dd.logical import nodes as logical
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import ByIdentity, each_once
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Map, Union
from dbt_incremental_dd.logical.recursion import Binding, Fixpoint, Hoisted, Recur

_GROUPED = logical.Reduce | logical.Distinct | logical.Threshold | logical.TopK | logical.Window
_IN_PATHS = re.compile(r"[a-z_][a-z0-9_]*")
"""Names of bindings that folders may have; what else a recursion stores has other names."""
_NOWHERE = State("", (), ())


def plan_fixpoint(node: Fixpoint, types: Types, names: Names, lower: Callable[[Node], Node]) -> Iterate:
    """The recursion's variables in order; ``lower`` is for what does not recur."""
    return _Recursion(node, types, names.new("recursion")).plan(tuple(lower(operand) for operand in node.operands))


@dataclass(frozen=True)
class _Target:
    """The variable that a binding is: its name, what it computes, and which of its columns are the binding's."""

    variable: str
    node: Node
    columns: tuple[tuple[str, Id], ...]


class _Recursion:
    def __init__(self, node: Fixpoint, types: Types, name: str) -> None:
        self._node = node
        self._types = types
        self._name = name
        self._targets = {binding.name: self._target(binding) for binding in node.bindings}
        self._variables: dict[str, Variable] = {}
        self._inner = ByIdentity[str]()
        self._count = 0

    def plan(self, operands: tuple[Node, ...]) -> Iterate:
        """All of it."""
        for target in self._targets.values():
            self._variable(target.variable, target.node)
        variables = tuple(_arranged(v, self._variables) for v in self._variables.values())
        outputs = tuple(Output(name, t.variable, t.columns) for name, t in self._targets.items())
        return Iterate(operands, variables, outputs, self._node.limit)

    def _target(self, binding: Binding) -> _Target:
        """The binding without what only renames its columns."""
        names = binding.schema.names
        node, columns = binding.plan, dict(zip(names, binding.plan.columns, strict=True))
        while isinstance(node, Map) and isinstance(node.input, _GROUPED | Map):
            sources = {id: expr.as_column for id, expr in node.outputs}
            if None in sources.values() or sorted(map(str, sources.values())) != sorted(node.input.columns):
                break
            columns = {name: str(sources[id]) for name, id in columns.items()}
            node = node.input
        own = binding.name if _IN_PATHS.fullmatch(binding.name) else str(self._node.bindings.index(binding))
        return _Target(f"{self._name}.{own}", node, tuple(columns.items()))

    def _variable(self, name: str, node: Node) -> None:
        """The variable that computes ``node``."""
        if not isinstance(node, _GROUPED):
            source, iteration = self._linear(node)
            trace = State(name, (*node.columns, ITERATION), ())
            self._variables[name] = Variable(
                name, source, iteration, operator=None, keys=(), accumulate=None, trace=trace, counts=None
            )
            return
        source, iteration = self._linear(node.inputs[0])
        leaf = Operand(-1, node.inputs[0].columns)
        operator, accumulate, keys = self._operator(node, leaf)
        trace = State(name, (*node.columns, ITERATION), keys)
        counted = isinstance(node, logical.Distinct | logical.Threshold)
        counts = State(f"{name}.counts", (*node.columns, ITERATION), keys) if counted else None
        self._variables[name] = Variable(
            name, source, iteration, operator=operator, keys=keys, accumulate=accumulate, trace=trace, counts=counts
        )

    def _operator(self, node: Node, leaf: Node) -> tuple[Node, Accumulate | None, tuple[Id, ...]]:
        """The operator over ``leaf``, its form for the driver, and the columns by which it groups."""
        ties = tie_breakers(self._types, node.inputs[0])
        match node:
            case logical.Distinct():
                distinct = plan_distinct(leaf, Names())
                return distinct, distinct, node.columns
            case logical.Threshold():
                threshold = plan_threshold(leaf, Names())
                return threshold, threshold, node.columns
            case logical.TopK():
                top = TopGroups(
                    leaf, node.keys, node.order, ties=ties, limit=node.limit, offset=node.offset, old=_NOWHERE
                )
                return top, None, node.keys
            case logical.Window():
                functions = tuple((id, with_ties(function, ties)) for id, function in node.functions)
                return WindowGroups(leaf, node.keys, functions, old=_NOWHERE, growth=None, tail=None), None, node.keys
        assert isinstance(node, logical.Reduce)
        input_types = sql_types(self._types, node.input)
        planned = plan_reduce(
            node, leaf, input_types, arg_types=arg_types(self._types, node.input), names=Names(), output=None
        )
        whole = RecomputeGroups(
            leaf,
            node.keys,
            node.aggregates,
            global_row=node.global_row,
            reason="",
            input_types=input_types,
            old=_NOWHERE,
        )
        return whole, planned if isinstance(planned, Accumulate) else None, node.keys

    def _linear(self, node: Node) -> tuple[Node, Id]:
        """The plan with the iteration as a column, and that column's id."""
        found, iteration = self._with_iteration(node)
        if iteration is None:
            iteration = self._fresh()
            found = Map(found, (*_same(found.columns), (iteration, Expr("0L"))))
        return found, iteration

    def _with_iteration(self, node: Node) -> tuple[Node, Id | None]:
        match node:
            case Hoisted():
                return Operand(node.operand, node.columns), None
            case Recur():
                return self._reading(self._targets[node.binding], node)
            case logical.OuterJoin() | logical.SemiJoin():
                return self._one_sided(node)
            case logical.Join():
                return self._join(node)
            case Union():
                return self._union(node)
            case Map():
                below, iteration = self._linear(node.input)
                return Map(below, (*node.outputs, (iteration, Expr.column(iteration)))), iteration
        if node.by_rows and node.is_linear and len(node.inputs) == 1:
            below, iteration = self._linear(node.inputs[0])
            return node.with_inputs((below,)), iteration
        if not isinstance(node, _GROUPED):
            raise UnsupportedSQL(f"{type(node).__name__} in a recursion")
        return self._grouped(node)

    def _grouped(self, node: Node) -> tuple[Node, Id]:
        """An operator over groups below others: a variable of its own, read as it is in the same iteration."""
        name = self._inner.of(node, self._inner_variable)
        iteration = self._fresh()
        return Reading(name, 0, tuple((id, id) for id in node.columns), iteration), iteration

    def _inner_variable(self, node: Node) -> str:
        self._count += 1
        name = f"{self._name}.{type(node).__name__.lower()}-{self._count}"
        self._variable(name, node)
        return name

    def _reading(self, target: _Target, node: Recur) -> tuple[Node, Id]:
        columns = dict(target.columns)
        iteration = self._fresh()
        lag = 0 if target.variable in self._variables else 1
        return Reading(
            target.variable, lag, tuple((id, columns[name]) for id, name in node.outputs), iteration
        ), iteration

    def _join(self, node: logical.Join) -> tuple[Node, Id | None]:
        found = [self._with_iteration(operand) for operand in node.operands]
        joined = DeltaJoin(tuple(operand for operand, _ in found), node.on)
        iterations = [iteration for _, iteration in found if iteration is not None]
        if len(iterations) <= 1:
            return joined, iterations[0] if iterations else None
        latest = self._fresh()
        greatest = Expr(f"GREATEST({', '.join(iterations)})")
        return Map(joined, (*_same(node.columns), (latest, greatest))), latest

    def _one_sided(self, node: logical.OuterJoin | logical.SemiJoin) -> tuple[Node, Id | None]:
        """The right side does not recur, so that the join is linear."""
        left, iteration = self._linear(node.left)
        right, _ = self._with_iteration(node.right)
        sides = {**dict(sql_types(self._types, node.left, node.right)), iteration: "BIGINT"}
        lowered = node.with_inputs((left, right))
        if isinstance(lowered, logical.SemiJoin):
            return plan_semi_join(lowered, sides), iteration
        assert isinstance(lowered, logical.OuterJoin)
        return plan_outer_join(lowered, sides), iteration

    def _union(self, node: Union) -> tuple[Node, Id]:
        """Each operand with the common types, and the iteration at the end."""
        common = self._types.of(node)
        latest = self._fresh()
        operands: list[Node] = []
        for operand in node.operands:
            found, iteration = self._linear(operand)
            operands.append(Map(found, (*casts(self._types, operand, common), (iteration, Expr.column(iteration)))))
        return Union(tuple(operands), (*node.ids, latest)), latest

    def _fresh(self) -> Id:
        self._count += 1
        return f"dd_i{self._count}"


def _same(columns: tuple[Id, ...]) -> tuple[tuple[Id, Expr], ...]:
    return tuple((id, Expr.column(id)) for id in columns)


def _arranged(variable: Variable, variables: dict[str, Variable]) -> Variable:
    """The variable with its trace sorted by what it is joined by, then by its keys."""
    wanted = dict.fromkeys((*_joined_by(variable.name, variables), *variable.keys))
    order = (*wanted, *(() if wanted else variable.columns[:1]))
    return replace(variable, trace=replace(variable.trace, arranged_by=order))


def _joined_by(name: str, variables: dict[str, Variable]) -> list[Id]:
    """Columns of the variable's trace that joins compare with others, the first join's."""
    for reader in variables.values():
        for node in each_once(reader.source):
            if not isinstance(node, DeltaJoin):
                continue
            for operand in node.operands:
                columns = {
                    id: own
                    for leaf in each_once(operand)
                    if isinstance(leaf, Reading) and leaf.variable == name
                    for id, own in leaf.outputs
                }
                sides = [s for c in node.on for p in c.conjuncts() for s in (p.equality_sides() or ())[:2]]
                found = [columns[str(s.as_column)] for s in sides if s.as_column in columns]
                if found:
                    return found
    return []
