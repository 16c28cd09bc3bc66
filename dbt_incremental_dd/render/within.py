"""Inside a recursion: what an event changes in a linear plan.

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
from dbt_incremental_dd.logical.nodes import Node
from dbt_incremental_dd.render.keys import Keys
from dbt_incremental_dd.render.rows import Rows, plus
from dbt_incremental_dd.trace.local import Local

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import Event, OperatorRun


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """What the event adds."""
    event = r.event
    assert event is not None
    if isinstance(node, Operand):
        return event.recursion.operand_delta(node.number) if event.outside else None
    assert isinstance(node, Reading)
    return _seen(node, _change(node, event))


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """The updates of all iterations, with the event or without it."""
    event = r.event
    assert event is not None
    if isinstance(node, Operand):
        return event.recursion.operand_contents(node.number, new=new or not event.outside, keys=keys)
    assert isinstance(node, Reading)
    columns = dict(node.outputs)
    if keys is not None:
        keys = keys.only([id for id in keys.columns if id in columns]).renamed(columns)
        keys = keys if keys.columns else None
    change = _change(node, event) if new else None
    if change is not None and keys is not None:
        change = keys.restricted(change)
    return _seen(node, plus([event.recursion.updates(node.variable, keys), change]))


def _change(node: Reading, event: Event) -> Rows | None:
    """What changes in the variable that is read."""
    return event.change if node.variable == event.name else None


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
