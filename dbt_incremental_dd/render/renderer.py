"""Renders a differential plan: the delta of each operator over the run's interval, and contents at either end of it.

``render.operator`` says what each operator answers, and what it may ask of the run. Deltas are computed once each.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, TypeVar

from dbt_incremental_dd.core.profile import OperatorProfile
from dbt_incremental_dd.differential.groups import Recompute, RecomputeGroups, StoredOutput, TopGroups, WindowGroups
from dbt_incremental_dd.differential.iterate import Iterate, Operand, Reading
from dbt_incremental_dd.differential.join import DeltaJoin, Path, paths
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.differential.shared import shared
from dbt_incremental_dd.differential.state import State, stores
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Constant, Filter, FlatMap, Get, Map, Negate, Union
from dbt_incremental_dd.logical.recursion import Bound
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render import (
    bound,
    constant,
    get,
    groups,
    join,
    linear,
    matches,
    outer_join,
    reduce,
    top,
    top_groups,
    window,
    within,
)
from dbt_incremental_dd.render.clock import OperatorClock
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.render.loop import Loop
from dbt_incremental_dd.render.operator import Event, Operator
from dbt_incremental_dd.render.probes import Probes
from dbt_incremental_dd.render.profiles import profiles
from dbt_incremental_dd.render.reads import interval_bytes
from dbt_incremental_dd.render.statistics import LogStatistics


class Renderer:
    """One model's plan over one interval."""

    def __init__(self, context: Context, root: Node, clock: OperatorClock | None = None) -> None:
        """``clock``: measures the operators; those inside of a recursion are part of it."""
        self.context = context
        self.event: Event | None = None
        """What it is that changes, inside of a recursion."""
        self._root = root
        self._shared = shared(root)
        self._deltas: dict[int, Relation | None] = {}
        self._contents: dict[tuple[int, bool], Relation | None] = {}
        self._kept: set[int] = set()
        self._paths: dict[int, tuple[Path, ...]] = {}
        self._loops: dict[int, Loop] = {}
        self._clock = clock

    @cached_property
    def probes(self) -> Probes:
        """What the run has found by key."""
        return Probes(self.context, get.needed(each_once(self._root), self.context))

    def within(self, context: Context, root: Node, event: Event) -> Renderer:
        """For a plan inside of a recursion, and one event there."""
        inside = Renderer(context, root)
        inside.event = event
        inside._paths = self._paths
        return inside

    def run(self) -> Relation | None:
        """The plan's delta. Every state is brought to ``t1``, also where an empty input made an answer without it."""
        with self._room():
            return self._run()

    def _room(self) -> AbstractContextManager[None]:
        """For reading everything, where the run does so or much has changed. A recursion goes through it many times."""
        context = self.context
        changed = sum(source.changed for source in context.inputs.values())
        is_much = context.from_nothing or changed > context.thresholds.task_rows
        if not is_much or any(isinstance(node, Iterate) for node in each_once(self._root)):
            return nullcontext()
        return context.workspace.reading_all(interval_bytes(self._root, context))

    def _run(self) -> Relation | None:
        rows = self.delta(self._root)
        for node in each_once(self._root):
            if stores(node) or matches.are_kept(node, self):
                self.delta(node)
        if not self.context.from_nothing:
            self.probes.arrangements.advance()
        return rows

    def delta(self, node: Node) -> Relation | None:
        """The node's delta; None where nothing below it changed. Computed once, and kept where several read it."""
        if id(node) not in self._deltas:
            self._deltas[id(node)] = self._measured(node, lambda: _renderer(node).delta(node, self))
            if self._is_stored(node):
                self._kept.add(id(node))
            if id(node) in self._shared:
                self.small_delta(node)
        return self._deltas[id(node)]

    def paths(self, node: DeltaJoin) -> tuple[Path, ...]:
        """The join's paths, ordered by what is known of its inputs now."""
        if id(node) not in self._paths:
            self._paths[id(node)] = paths(node, LogStatistics(self.context.inputs))
        return self._paths[id(node)]

    def recursion(self, node: Iterate) -> Loop:
        """The recursion within this run."""
        if id(node) not in self._loops:
            self._loops[id(node)] = Loop(node, self)
        return self._loops[id(node)]

    def small_delta(self, node: Node) -> Relation | None:
        """The node's delta, computed once and kept, because it will be read several times."""
        rows = self.delta(node)
        if rows is not None and id(node) not in self._kept:
            self._deltas[id(node)] = rows.materialized()
            self._kept.add(id(node))
        return self._deltas[id(node)]

    def delta_at_hand(self, node: Node, limit: int | None = None) -> Relation | None:
        """The node's delta, on the driver where it is small (``limit``), to be put together with what its keys find."""
        rows = self.delta(node)
        limit = self.context.thresholds.local_rows if limit is None else limit
        if rows is None or self.context.from_nothing or rows.estimate > limit:
            return rows
        return self.small_delta(node)

    def _is_stored(self, node: Node) -> bool:
        """Whether the delta is read from what the operator has just stored, or is there for a recursion's readers."""
        if isinstance(node, Operand | Reading):
            return True
        stores_output = isinstance(node, StoredOutput) and isinstance(node.old, State)
        return stores_output or (isinstance(node, Accumulate) and self.context.from_nothing)

    def contents(self, node: Node, *, new: bool, keys: Keys | None = None) -> Relation | None:
        """The node's contents: nothing at all at the start of an interval from nothing, its delta at the end of it."""
        if not new and self.context.from_nothing:
            return None
        if self.context.from_nothing and id(node) in self._shared:
            rows = self.delta(node)
            return rows if rows is None or keys is None or keys.advisory else keys.restricted(rows)
        if keys is None and id(node) in self._shared and self.event is None:
            return self._whole(node, new=new)
        return self._measured(node, lambda: _renderer(node).contents(node, self, new=new, keys=keys))

    def _whole(self, node: Node, *, new: bool) -> Relation | None:
        """All contents of what several operators read: those of one full join over another are asked for twice by
        each of them, so that what lies below many would be computed as often as 2 to the power of their number."""
        if (id(node), new) not in self._contents:
            rows = self._measured(node, lambda: _renderer(node).contents(node, self, new=new, keys=None))
            is_little = rows is not None and rows.estimate <= self.context.thresholds.task_rows
            self._contents[id(node), new] = rows.localized() if rows is not None and is_little else rows
        return self._contents[id(node), new]

    def _measured(self, node: Node, answer: Callable[[], Relation | None]) -> Relation | None:
        """The operator's answer, whose time is its own but for what it asks of others."""
        if self._clock is None:
            return answer()
        self._clock.enter(id(node))
        try:
            return answer()
        finally:
            self._clock.leave()

    def profile(self) -> tuple[OperatorProfile, ...]:
        """What the operators of the plan took, the output's first; nothing without a clock."""
        if self._clock is None:
            return ()
        return profiles(self._root, self._clock, self._deltas, self.context.inputs)


N = TypeVar("N", bound=Node)


def _renderer(node: N) -> Operator[N]:
    return _RENDERERS[type(node)]


def _of(kind: type[N], operator: Operator[N]) -> tuple[type[Node], Operator[Any]]:
    """Who renders nodes of a kind."""
    return kind, operator


_RENDERERS = dict(
    (
        _of(Get, get),
        _of(Constant, constant),
        _of(Map, linear),
        _of(Filter, linear),
        _of(FlatMap, linear),
        _of(Union, linear),
        _of(Negate, linear),
        _of(DeltaJoin, join),
        _of(LeftLinearJoin, outer_join),
        _of(Accumulate, reduce),
        _of(RecomputeGroups, groups),
        _of(TopGroups, top_groups),
        _of(KeptTop, top),
        _of(WindowGroups, window),
        _of(Recompute, groups),
        _of(Iterate, bound),
        _of(Bound, bound),
        _of(Operand, within),
        _of(Reading, within),
    )
)
