"""Builds states when a run first needs them: an operator's own, as of when the run began.

They are what the operator stores in an initial load of what its inputs held at the run's start. Operators below that
have states of their own tell it by these, which are built in the same way if they are not yet. So a run builds the
states that its change comes to, and no others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from dbt_incremental_dd.core.time import BEGINNING
from dbt_incremental_dd.differential.state import State, stores
from dbt_incremental_dd.differential.unbuilt import needed_states
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.render.context import Context
from dbt_incremental_dd.render.reads import whole_bytes
from dbt_incremental_dd.render.renderer import Renderer


def build_when_needed(run: Renderer, root: Node) -> None:
    """From here on the run builds what it finds unbuilt of its plan's states."""
    if run.context.inner.unbuilt:
        run.context.inner.build = _Building(run, root).build


class _Building:
    """``_depth``: how many states are being built, each for the one before."""

    def __init__(self, run: Renderer, root: Node) -> None:
        self._run = run
        self._nodes = {state.name: node for node in each_once(root) for state in needed_states(node)}
        self._depth = 0

    def build(self, state: State) -> Mapping[str, int | None]:
        """The states of its operator, with the version of each; None for one that is empty. The time does not count
        as the delta's."""
        node, context, started = self._nodes[state.name], self._run.context, time.monotonic()
        names = [one.name for one in stores(node)]
        context.report(f"{', '.join(names)}: built now, from the inputs' contents")
        self._depth += 1
        try:
            with context.workspace.reading_all(whole_bytes(node, context)):
                inner = context.inner.from_nothing()
                inputs = {name: replace(one, t0=BEGINNING, t1=one.t0) for name, one in context.inputs.items()}
                at_start = replace(context, t0=BEGINNING, t1=context.t0, at=context.t0, inputs=inputs, inner=inner)
                _FromNothing(self._run, node, at_start).delta(node)
        finally:
            self._depth -= 1
        if not self._depth:
            context.once_seconds += time.monotonic() - started
        built = inner.versions()
        return {name: built.get(name) for name in names}


class _FromNothing(Renderer):
    """One operator over an interval from nothing to when ``outer`` began."""

    def __init__(self, outer: Renderer, node: Node, context: Context) -> None:
        super().__init__(context, node)
        self._outer = outer
        self._with_states = {id(one) for one in each_once(node) if one is not node and needed_states(one)}
        self._held: dict[int, Relation | None] = {}

    def delta(self, node: Node) -> Relation | None:
        """All that was there is new."""
        return self._told(node) if id(node) in self._with_states else super().delta(node)

    def contents(self, node: Node, *, new: bool, keys: Keys | None = None) -> Relation | None:
        """What was there, at the end of the interval."""
        if id(node) not in self._with_states or not new:
            return super().contents(node, new=new, keys=keys)
        rows = self._told(node)
        return rows if rows is None or keys is None or keys.advisory else keys.restricted(rows)

    def _told(self, node: Node) -> Relation | None:
        if id(node) not in self._held:
            self._held[id(node)] = self._outer.contents(node, new=False)
        return self._held[id(node)]
