"""The operators' rules, each one decision: which of the differential operators keeps the node up to date."""

from __future__ import annotations

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.core.types import VOID
from dbt_incremental_dd.differential.groups import Recompute, TopGroups, WindowGroups
from dbt_incremental_dd.differential.iterate import Iterate
from dbt_incremental_dd.differential.join import DeltaJoin
from dbt_incremental_dd.differential.lowering import Lowering
from dbt_incremental_dd.differential.outer_join import plan_outer_join, plan_semi_join
from dbt_incremental_dd.differential.recursion import plan_fixpoint
from dbt_incremental_dd.differential.reduce import plan_distinct, plan_reduce, plan_threshold
from dbt_incremental_dd.differential.state import State
from dbt_incremental_dd.differential.top import plan_kept_top
from dbt_incremental_dd.differential.typed import arg_types, casts, sql_types, tie_breakers
from dbt_incremental_dd.differential.window import with_ties
from dbt_incremental_dd.differential.window_append import NUMBER, plan_growth
from dbt_incremental_dd.logical import nodes as logical
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Map, Union
from dbt_incremental_dd.logical.recursion import Fixpoint


def join(node: logical.Join, lowering: Lowering) -> Node:
    """A delta query."""
    return DeltaJoin(tuple(lowering.lower(operand) for operand in node.operands), node.on)


def outer_join(node: logical.OuterJoin, lowering: Lowering) -> Node:
    """Joins that are linear in one input."""
    lowered = logical.OuterJoin(node.kind, lowering.lower(node.left), lowering.lower(node.right), node.on)
    return plan_outer_join(lowered, dict(sql_types(lowering.types, node.left, node.right)))


def semi_join(node: logical.SemiJoin, lowering: Lowering) -> Node:
    """A join that is linear in the left input."""
    lowered = logical.SemiJoin(node.anti, lowering.lower(node.left), lowering.lower(node.right), node.on)
    return plan_semi_join(lowered, dict(sql_types(lowering.types, node.left, node.right)))


def reduce(node: logical.Reduce, lowering: Lowering) -> Node:
    """Accumulators, or groups that are recomputed."""
    source = lowering.lower(node.input)
    return plan_reduce(
        node,
        source,
        sql_types(lowering.types, node.input),
        arg_types=arg_types(lowering.types, node.input),
        names=lowering.names,
        output=lowering.stored_as_output(node),
    )


def distinct(node: logical.Distinct, lowering: Lowering) -> Node:
    """Counts by row."""
    return plan_distinct(lowering.lower(node.input), lowering.names)


def threshold(node: logical.Threshold, lowering: Lowering) -> Node:
    """Counts by row."""
    return plan_threshold(lowering.lower(node.input), lowering.names)


def top_k(node: logical.TopK, lowering: Lowering) -> Node:
    """First rows that are kept, of everything or of groups."""
    ties = tie_breakers(lowering.types, node.input)
    source = lowering.lower(node.input)
    kept = plan_kept_top(node, source, ties, lowering.names)
    if kept is not None:
        return kept
    old = lowering.stored_as_output(node) or State(lowering.names.new("top"), node.columns, node.keys)
    return TopGroups(source, node.keys, node.order, ties=ties, limit=node.limit, offset=node.offset, old=old)


def window(node: logical.Window, lowering: Lowering) -> Node:
    """Partitions that are recomputed, or extended at their end."""
    name = lowering.names.new("window")
    old = lowering.stored_as_output(node) or State(name, node.columns, node.keys)
    ties = tie_breakers(lowering.types, node.input)
    functions = tuple((id, with_ties(function, ties)) for id, function in node.functions)
    growth = plan_growth(functions, {column.name: column.type for column in lowering.types.of(node)})
    tail = State(f"{name}.tail", (*node.columns, NUMBER), node.keys) if growth else None
    return WindowGroups(lowering.lower(node.input), node.keys, functions, old=old, growth=growth, tail=tail)


def union(node: Union, lowering: Lowering) -> Node:
    """Casts each operand to the common type, so that one operand's delta can stand alone."""
    common = lowering.types.of(node)
    return Union(tuple(_cast(operand, common, lowering) for operand in node.operands), node.ids)


def _cast(operand: Node, common: Schema, lowering: Lowering) -> Node:
    outputs = casts(lowering.types, operand, common)
    lowered = lowering.lower(operand)
    if all(expr.as_column for _, expr in outputs):
        return lowered
    if isinstance(lowered, Map) and any(column.type == VOID for column in lowering.types.of(operand)):
        made = dict(lowered.outputs)  # NULLs have a type from the beginning: without one they are Spark's to compute
        return Map(lowered.input, tuple((id, expr.substitute(made)) for id, expr in outputs))
    return Map(lowered, outputs)


def fallback(node: logical.Fallback, lowering: Lowering) -> Node:
    """The text's answer, whole."""
    old = lowering.stored_as_output(node) or State(lowering.names.new("recompute"), node.columns, ())
    operands = tuple(lowering.lower(operand) for operand in node.operands)
    types = tuple(sql_types(lowering.types, operand) for operand in node.operands)
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


def fixpoint(node: Fixpoint, lowering: Lowering) -> Iterate:
    """Variables by differences of iterations."""
    return plan_fixpoint(node, lowering.types, lowering.names, lowering.lower)
