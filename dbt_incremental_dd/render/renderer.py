"""Renders a differential plan: the delta of each operator over the run's interval, and contents at either end of it.

An operator's renderer answers two questions: ``delta(node, r)``, None where it is certainly empty, and
``contents(node, r, new, keys)``, at the interval's end (``new``) or its start. Deltas are computed once each.
"""

from __future__ import annotations

from typing import Protocol

from dbt_incremental_dd.differential.groups import Recompute, RecomputeGroups, TopGroups, WindowGroups
from dbt_incremental_dd.differential.join import DeltaJoin
from dbt_incremental_dd.differential.outer_join import LeftLinearJoin
from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.logical.nodes import Constant, Filter, FlatMap, Get, Map, Negate, Node, Union
from dbt_incremental_dd.render import constant, get, groups, join, linear, outer_join, reduce
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.render.keys import Keys
from dbt_incremental_dd.render.rows import Rows


class OperatorRenderer(Protocol):
    """The two questions."""

    def delta(self, node: Node, r: Renderer) -> Rows | None:
        """The change of the operator's output over ``(t0, t1]``."""

    def contents(self, node: Node, r: Renderer, new: bool, keys: Keys | None) -> Rows | None:
        """The operator's output as of ``t1`` (``new``) or ``t0``, restricted to ``keys``; None: empty."""


class Renderer:
    """One model's plan over one interval."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._deltas: dict[int, Rows | None] = {}

    def delta(self, node: Node) -> Rows | None:
        """The node's delta; None where nothing below it changed."""
        if id(node) not in self._deltas:
            self._deltas[id(node)] = _renderer(node).delta(node, self)
        return self._deltas[id(node)]

    def small_delta(self, node: Node) -> Rows | None:
        """The node's delta, computed once and kept, because it will be read several times."""
        rows = self.delta(node)
        if rows is None:
            return None
        kept = self.context.materialize(rows)
        self._deltas[id(node)] = kept
        return kept

    def contents(self, node: Node, *, new: bool, keys: Keys | None = None) -> Rows | None:
        """The node's contents; nothing at all at the start of an interval from nothing."""
        if not new and self.context.from_nothing:
            return None
        return _renderer(node).contents(node, self, new, keys)


def _renderer(node: Node) -> OperatorRenderer:
    return _RENDERERS[type(node)]


_RENDERERS: dict[type[Node], OperatorRenderer] = {
    Get: get,
    Constant: constant,
    Map: linear,
    Filter: linear,
    FlatMap: linear,
    Union: linear,
    Negate: linear,
    DeltaJoin: join,
    LeftLinearJoin: outer_join,
    Accumulate: reduce,
    RecomputeGroups: groups,
    TopGroups: groups,
    WindowGroups: groups,
    Recompute: groups,
}
