"""A differential plan as a tree of text: each operator, how it turns deltas into deltas, and what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbt_incremental_dd.differential.groups import Recompute, RecomputeGroups, TopGroups, WindowGroups
from dbt_incremental_dd.differential.iterate import Iterate, Operand, Reading, Variable
from dbt_incremental_dd.differential.join import DeltaJoin, paths
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.differential.shared import shared
from dbt_incremental_dd.differential.state import OutputState, State, stores
from dbt_incremental_dd.differential.temporal import is_temporal
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.logical.explain import describe
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Constant, Filter, FlatMap, Get, Map, Negate, Union
from dbt_incremental_dd.logical.recursion import Bound


def explain(plan: DifferentialPlan) -> str:
    """The plan, a line for each operator, inputs indented below; then the fallbacks with their reasons.

    What several operators read stands below the first, with a number by which the others refer to it.
    """
    columns = ", ".join(f"{name} = {id}" for name, id in zip(plan.names, plan.root.columns, strict=True))
    lines = [f"Output [{columns}]", *_lines(plan.root, 1, shared(plan.root), {})]
    lines += [f"Fallback: {reason}" for reason in plan.fallbacks]
    return "\n".join(lines)


def _lines(node: Node, depth: int, several: set[int], numbers: dict[int, int]) -> list[str]:
    """``several``: what more than one operator reads; ``numbers``: those of them that stand above."""
    indent, mark = "  " * depth, ""
    if id(node) in numbers:
        return [f"{indent}Shared {numbers[id(node)]}, as above"]
    if id(node) in several:
        numbers[id(node)] = len(numbers) + 1
        mark = f"Shared {len(numbers)}: "
    lines = [f"{indent}{mark}{described(node)}{', as time passes' if is_temporal(node) else ''}"]
    lines += [f"{indent}  keeps {_state(state)}" for state in stores(node)]
    if isinstance(node, Iterate):
        for variable in node.variables:
            lines.append(f"{indent}  {variable.name} = {_operator(variable)}")
            lines += _lines(variable.source, depth + 2, set(), {})
    for child in node.inputs:
        lines += _lines(child, depth + 1, several, numbers)
    return lines


def described(node: Node) -> str:
    """The operator in a line: what it is, and how it turns deltas into deltas."""
    return _DESCRIBE.get(type(node), describe)(node)


def _operator(variable: Variable) -> str:
    """What a variable does with the rows of its source."""
    if variable.operator is None:
        return "the rows of"
    node, kind = variable.operator, "Reduce"
    if isinstance(node, Accumulate):
        kind = "Threshold" if node.threshold else "Distinct"
    elif not isinstance(node, RecomputeGroups):
        kind = "TopK" if isinstance(node, TopGroups) else "Window"
    return f"{kind} {_keys(variable.keys)}, groups in the iterations in which they change, of"


def _state(state: State) -> str:
    what = ", ".join(state.columns) or "one row"
    return f"{state.name}: {what}; diffs {', '.join(state.diffs)}"


def _keys(keys: tuple[str, ...]) -> str:
    return f"by [{', '.join(keys)}]" if keys else "of everything"


def _join(node: Any) -> str:
    told = []
    for path in paths(node):
        steps = "".join(f" -> {step.operand} on {_on(step.equalities)}" for step in path.steps)
        told.append(f"d{path.start}{steps}")
    return f"Join, delta query: {'; '.join(told)}"


def _on(equalities: Any) -> str:
    return ", ".join(f"{e.left.sql} = {e.right.sql}" for e in equalities) or "everything"


def _accumulate(node: Any) -> str:
    if node.threshold:
        return "Threshold, by accumulated counts"
    if not node.outputs:
        return f"Distinct {_keys(node.keys)}, by accumulated counts"
    how = "accumulated" if not node.extremes else "accumulated; extremes compared, recomputed where they are retracted"
    return f"Reduce {_keys(node.keys)} [{', '.join(id for id, _ in node.outputs)}], {how}"


def _window(node: Any) -> str:
    how = "affected partitions; large ones extended at their end" if node.growth else "affected partitions"
    return f"Window {_keys(node.keys)}, {how}, old rows from {_old(node)}"


def _old(node: Any) -> str:
    return "the model's own output" if isinstance(node.old, OutputState) else "its own trace"


_DESCRIBE: dict[type[Node], Callable[[Any], str]] = {
    Get: lambda n: f"Get {n.collection} [{', '.join(f'{id} = {name}' for id, name in n.outputs)}]",
    Constant: lambda n: f"Constant {n.sql}",
    Map: lambda n: f"Map [{', '.join(f'{id} = {e.sql}' for id, e in n.outputs if e.sql != id) or 'columns left out'}]",
    Filter: lambda n: f"Filter {n.predicate.sql}",
    FlatMap: lambda n: f"FlatMap {n.generator.sql}{' outer' if n.outer else ''} [{', '.join(n.outputs)}]",
    Union: lambda n: f"Union of {len(n.operands)}",
    Negate: lambda n: "Negate",
    DeltaJoin: _join,
    LeftLinearJoin: lambda n: f"Join {n.kind}, linear in the left input, touched keys on {_on(n.equalities)}",
    Accumulate: _accumulate,
    RecomputeGroups: lambda n: (
        f"Reduce {_keys(n.keys)}, affected groups recomputed, old rows from {_old(n)}; {n.reason}"
    ),
    TopGroups: lambda n: (
        f"TopK {_keys(n.keys)} limit {n.limit} offset {n.offset}, affected groups, old rows from {_old(n)}"
    ),
    KeptTop: lambda n: (
        f"TopK of everything limit {n.limit} offset {n.offset}, first rows kept; all of the input where they run out"
    ),
    WindowGroups: _window,
    Iterate: lambda n: f"Recursion of {', '.join(o.binding for o in n.outputs)}, by differences of iterations",
    Operand: lambda n: f"Input {n.number} of the recursion",
    Reading: lambda n: f"Read {n.variable}{' of the iteration before' if n.lag else ''}",
    Bound: lambda n: f"Fixed point of {n.binding}",
    Recompute: lambda n: f"Recompute all, old rows from {_old(n)}: {n.reason}",
}
