"""Output columns that a condition can be put on before the query is computed, and where their values come from.

A condition on such a column may as well stand on a column of an input: every operator on the way passes it through, as
an optimizer does. So the rows of some of its values cost little more than a look through the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_incremental_dd.differential.groups import RecomputeGroups, TopGroups, WindowGroups
from dbt_incremental_dd.differential.join import DeltaJoin
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Filter, FlatMap, Get, Map, Negate, Union


@dataclass(frozen=True)
class Origin:
    """A column of a collection that an output's values are taken from as they are."""

    collection: str
    column: str


def origins(plan: DifferentialPlan) -> Mapping[str, frozenset[Origin]]:
    """By name, the output columns whose every value is one of these columns of inputs."""
    found = ((name, _of(plan.root, id)) for id, name in zip(plan.root.columns, plan.names, strict=True))
    return {name: frozenset(those) for name, those in found if those}


def _of(node: Node, column: Id) -> frozenset[Origin]:
    """Empty where a condition on the column would have to stay above the operator."""
    match node:
        case Get():
            return frozenset(Origin(node.collection, name) for id, name in node.outputs if id == column)
        case Map():
            source = dict(node.outputs)[column].as_column
            return _of(node.input, source) if source else frozenset()
        case Filter() | Negate():
            return _of(node.input, column)
        case FlatMap():
            return _of(node.input, column) if column in node.input.columns else frozenset()
        case Union():
            at = node.columns.index(column)
            parts = [_of(operand, operand.columns[at]) for operand in node.operands]
            return frozenset().union(*parts) if all(parts) else frozenset()
        case DeltaJoin():
            return next((_of(operand, column) for operand in node.operands if column in operand.columns), frozenset())
        case LeftLinearJoin():
            return _of(node.left, column) if column in node.left.columns else frozenset()
        case Accumulate() | RecomputeGroups() | TopGroups() | WindowGroups():
            return _of(node.input, column) if column in node.keys else frozenset()
    return frozenset()
