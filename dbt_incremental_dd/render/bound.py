"""A recursion, and the bindings that are read of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.differential.iterate import Iterate, Output
from dbt_incremental_dd.logical.nodes import Node
from dbt_incremental_dd.logical.recursion import Bound
from dbt_incremental_dd.render.keys import Keys
from dbt_incremental_dd.render.rows import Rows

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """The change of a binding; a recursion itself has no rows, but is brought to its fixed point."""
    if isinstance(node, Iterate):
        r.recursion(node).run()
        return None
    found, output = _output(node, r)
    rows = r.recursion(found).change(output.variable)
    return None if rows is None else _named(node, output, rows)


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """The binding's rows at the fixed point."""
    found, output = _output(node, r)
    assert isinstance(node, Bound)
    columns = {id: dict(output.columns)[name] for id, name in node.outputs}
    below = None if keys is None else keys.renamed(columns)
    rows = r.recursion(found).contents(output.variable, new=new, keys=below)
    return None if rows is None else _named(node, output, rows)


def _output(node: Node, r: OperatorRun) -> tuple[Iterate, Output]:
    assert isinstance(node, Bound) and isinstance(node.input, Iterate)
    return node.input, node.input.output(node.binding)


def _named(node: Node, output: Output, rows: Rows) -> Rows:
    assert isinstance(node, Bound)
    columns = dict(output.columns)
    named = rows.renamed([(id, columns[name]) for id, name in node.outputs])
    return replace(named, consolidated=rows.consolidated and len(node.outputs) == len(columns))
