"""Inside a recursion: a variable's linear plan, and what one event changes in it.

An event is the change of one variable in one iteration, or of all that does not recur. The delta of a linear plan is
what the event adds to it, joined with all that was there before; its contents are as of all events so far.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.differential.iterate import ITERATION, Operand, Reading
from dbt_incremental_dd.differential.join import DeltaJoin, Path, paths
from dbt_incremental_dd.logical.nodes import Node
from dbt_incremental_dd.render.keys import Keys
from dbt_incremental_dd.render.renderer import Renderer
from dbt_incremental_dd.render.rows import Rows, plus
from dbt_incremental_dd.trace.local import Local

if TYPE_CHECKING:
    from dbt_incremental_dd.render.loop import Loop


class Within(Renderer):
    """One event's delta. ``event``: a variable's name and its change; None: the change of what does not recur."""

    def __init__(self, loop: Loop, event: tuple[str, Rows | None] | None) -> None:
        self.context = loop.context
        self._loop = loop
        self._event = event
        self._deltas: dict[int, Rows | None] = {}
        self._shared: set[int] = set()
        self._kept: set[int] = set()

    def delta(self, node: Node) -> Rows | None:
        """What the event adds to the node."""
        if isinstance(node, Operand):
            return self._loop.operands.delta(node.number) if self._event is None else None
        if isinstance(node, Reading):
            name, change = self._event or ("", None)
            return _seen(node, change) if name == node.variable else None
        return super().delta(node)

    def small_delta(self, node: Node) -> Rows | None:
        """What is read of an event is there already."""
        return self.delta(node) if isinstance(node, Operand | Reading) else super().small_delta(node)

    def contents(self, node: Node, *, new: bool, keys: Keys | None = None) -> Rows | None:
        """The node's updates of all iterations, with the event or without it."""
        if isinstance(node, Operand):
            return self._loop.operands.contents(node.number, new=new or self._event is not None, keys=keys)
        if isinstance(node, Reading):
            return self._read(node, new, keys)
        return super().contents(node, new=new, keys=keys)

    def paths(self, node: DeltaJoin) -> tuple[Path, ...]:
        """By the join's equalities: nothing is known of what a recursion will hold."""
        if id(node) not in self._loop.paths:
            self._loop.paths[id(node)] = paths(node)
        return self._loop.paths[id(node)]

    def _read(self, node: Reading, new: bool, keys: Keys | None) -> Rows | None:
        columns = dict(node.outputs)
        if keys is not None:
            keys = keys.only([id for id in keys.columns if id in columns]).renamed(columns)
            keys = keys if keys.columns else None
        rows = self._loop.states[node.variable].contents(keys)
        name, change = self._event or ("", None)
        if new and change is not None and name == node.variable:
            rows = plus([rows, change if keys is None else keys.restricted(change)])
        return _seen(node, rows)


def _seen(node: Reading, rows: Rows | None) -> Rows | None:
    """A variable's updates under the reading's ids, ``lag`` iterations later."""
    if rows is None:
        return None
    if node.lag:
        rows = _later(rows, node.lag)
    return rows.renamed([*node.outputs, (node.iteration, ITERATION)])


def _later(rows: Rows, lag: int) -> Rows:
    local = rows.source
    if not isinstance(local, Local):
        return replace(rows, source=local.withColumn(ITERATION, F.col(ITERATION) + lag))
    place = local.table.column_names.index(ITERATION)
    table = local.table.set_column(place, ITERATION, pc.add(local.table[ITERATION], pa.scalar(lag, pa.int64())))
    return replace(rows, source=local.with_table(table))
