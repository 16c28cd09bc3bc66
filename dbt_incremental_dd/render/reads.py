"""How much of its inputs the run of a plan may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.differential.reduce import Accumulate
from dbt_incremental_dd.differential.state import stores
from dbt_incremental_dd.differential.temporal import is_temporal
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Get
from dbt_incremental_dd.relation.room import files_bytes
from dbt_incremental_dd.render.get import stored_columns
from dbt_incremental_dd.render.linear import Linear

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context


def whole_bytes(root: Node, context: Context) -> float:
    """About how much memory all that the plan reads takes as Arrow's tables, at the end of the run; infinite where
    Arrow does not read it."""
    return sum(_bytes(node, context, whole=True) for node in _gets(root))


def interval_bytes(root: Node, context: Context) -> float:
    """The same for a run over the interval: of a collection whose contents no operator asks for, its updates alone."""
    asked = _asked_for_contents(root, context)
    return sum(_bytes(node, context, whole=id(node) in asked) for node in _gets(root))


def _asked_for_contents(root: Node, context: Context) -> set[int]:
    """Identities of the operators whose contents the run may ask for, and of all below them."""
    found: set[int] = set()
    for node in reversed(each_once(root)):  # those that read it come before it
        if id(node) in found or not _needs_deltas_alone(node, context):
            found.update(map(id, node.inputs))
    return found


def _needs_deltas_alone(node: Node, context: Context) -> bool:
    """Whether the operator's delta follows from its inputs' deltas and from what it has stored."""
    if context.from_nothing or is_temporal(node):
        return False
    if isinstance(node, Accumulate):
        return not node.extremes and not any(state.name in context.inner.unbuilt for state in stores(node))
    return isinstance(node, Linear)


def _gets(root: Node) -> list[Get]:
    return [node for node in each_once(root) if isinstance(node, Get)]


def _bytes(node: Get, context: Context, *, whole: bool) -> float:
    source = context.inputs[node.collection]
    files = source.log.summands(source.t1) if whole else source.new_files
    return files_bytes(files, stored_columns(node, source.schema))
