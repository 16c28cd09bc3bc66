"""Inside a recursion: what an event changes in a linear plan.

An event is the change of one variable in one iteration, or of all that does not recur. The delta of a linear plan is
what the event adds to it, joined with all that was there before; its contents are as of all events so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.differential.iterate import ITERATION, Operand, Reading
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation, plus

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import Event, OperatorRun


def delta(node: Operand | Reading, run: OperatorRun) -> Relation | None:
    """What the event adds."""
    event = run.event
    assert event is not None
    if isinstance(node, Operand):
        return event.recursion.operand_delta(node.number) if event.outside else None
    return _seen(node, _change(node, event))


def contents(node: Operand | Reading, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The updates of all iterations, with the event or without it."""
    event = run.event
    assert event is not None
    if isinstance(node, Operand):
        return event.recursion.operand_contents(node.number, new=new or not event.outside, keys=keys)
    columns = dict(node.outputs)
    if keys is not None:
        keys = keys.only([id for id in keys.columns if id in columns]).renamed(columns)
        keys = keys if keys.columns else None
    change = _change(node, event) if new else None
    if change is not None and keys is not None:
        change = keys.restricted(change)
    return _seen(node, plus([event.recursion.updates(node.variable, keys), change]))


def _change(node: Reading, event: Event) -> Relation | None:
    """What changes in the variable that is read."""
    return event.change if node.variable == event.name else None


def _seen(node: Reading, rows: Relation | None) -> Relation | None:
    """A variable's updates under the reading's ids, ``lag`` iterations later."""
    if rows is None:
        return None
    if node.lag:
        rows = rows.update([(ITERATION, Expr(f"{ITERATION} + {node.lag}L"))])
    return rows.select([*node.outputs, (node.iteration, ITERATION)])
