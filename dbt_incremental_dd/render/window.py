"""Window functions: partitions that change are recomputed, and large ones that only grow at their end extended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.differential.groups import WindowGroups
from dbt_incremental_dd.logical.nodes import Node
from dbt_incremental_dd.render import groups
from dbt_incremental_dd.render.growth import Growing
from dbt_incremental_dd.render.rows import Rows, consolidated, negated, plus

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

contents = groups.contents


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """The affected partitions' new rows minus their old ones."""
    assert isinstance(node, WindowGroups)
    if node.growth is None or r.context.from_nothing:
        return groups.delta(node, r)
    change = r.small_delta(node.input)
    if change is None:
        return None
    growing = Growing(node, r, change)
    tails = growing.stored()
    grown = growing.extended(tails)
    rest = change if grown is None else grown.rest
    known = plus([negated(tails), grown.tails if grown else None])
    if known is not None:
        growing.store(consolidated(known))
    recomputed = None if rest is None else groups.moved(node, r, groups.restriction(node, rest))
    return groups.kept(node, r, plus([recomputed, grown.answer if grown else None]))
