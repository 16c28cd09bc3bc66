"""A recursion, and the bindings that are read of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.differential.iterate import Iterate, Output
from dbt_incremental_dd.logical.recursion import Bound
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: Bound | Iterate, run: OperatorRun) -> Relation | None:
    """The change of a binding; a recursion itself has no rows, but is brought to its fixed point."""
    if isinstance(node, Iterate):
        run.recursion(node).run()
        return None
    found, output = _output(node)
    rows = run.recursion(found).change(output.variable)
    return None if rows is None else _named(node, output, rows)


def contents(node: Bound | Iterate, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The binding's rows at the fixed point; none of the recursion itself."""
    if isinstance(node, Iterate):
        return None
    found, output = _output(node)
    columns = {id: dict(output.columns)[name] for id, name in node.outputs}
    below = None if keys is None else keys.renamed(columns)
    rows = run.recursion(found).contents(output.variable, new=new, keys=below)
    return None if rows is None else _named(node, output, rows)


def _output(node: Bound) -> tuple[Iterate, Output]:
    assert isinstance(node.input, Iterate)
    return node.input, node.input.output(node.binding)


def _named(node: Bound, output: Output, rows: Relation) -> Relation:
    columns = dict(output.columns)
    return rows.select([(id, columns[name]) for id, name in node.outputs])
