"""Operators that recompute affected groups: the groups that the input's delta touches are computed anew from the
input's contents restricted to their keys, and what was there before is subtracted.

``old`` says where the former answer comes from: a trace of the operator's own, or the model's output. It is never
computed again: an answer that depends on the order of rows (collect_list, float sums) need not come out the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt_incremental_dd.differential.state import OutputState, State
from dbt_incremental_dd.differential.window_append import WindowAppend
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.nodes import Aggregate, Order


@dataclass(frozen=True)
class RecomputeGroups(Node):
    """Aggregates that only Spark can compute: percentiles, collect_list, variance, float sums, user's functions."""

    input: Node
    keys: tuple[Id, ...]
    aggregates: tuple[Aggregate, ...]
    global_row: bool
    reason: str
    input_types: tuple[tuple[Id, str], ...]
    old: State | OutputState

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.keys + tuple(aggregate.id for aggregate in self.aggregates)


@dataclass(frozen=True)
class TopGroups(Node):
    """Top-k of each group. ``ties`` are the columns that break ties."""

    input: Node
    keys: tuple[Id, ...]
    order: tuple[Order, ...]
    ties: tuple[Id, ...]
    limit: int | None
    offset: int
    old: State | OutputState

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns


@dataclass(frozen=True)
class WindowGroups(Node):
    """Window functions, by affected partition; large ones that only grow at their end are extended, where ``growth``
    says how, from the rows in ``tail``."""

    input: Node
    keys: tuple[Id, ...]
    functions: tuple[tuple[Id, Expr], ...]
    old: State | OutputState
    growth: WindowAppend | None
    tail: State | None

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.input.columns + tuple(id for id, _ in self.functions)


@dataclass(frozen=True)
class Recompute(Node):
    """The fallback: a whole subquery computed anew, and its stored former output subtracted."""

    sql: str
    operands: tuple[Node, ...]
    names: tuple[tuple[str, ...], ...]
    ids: tuple[Id, ...]
    reason: str
    temporal: bool
    operand_types: tuple[tuple[tuple[Id, str], ...], ...]
    old: State | OutputState

    @property
    def columns(self) -> tuple[Id, ...]:
        return self.ids


StoredOutput = RecomputeGroups | TopGroups | WindowGroups | Recompute
