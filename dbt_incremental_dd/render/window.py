"""Window functions: partitions that change are recomputed, and large ones that only grow at their end extended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.differential.groups import WindowGroups
from dbt_incremental_dd.relation.relation import Relation, negated, plus
from dbt_incremental_dd.render import groups
from dbt_incremental_dd.render.window_append import Appending

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

contents = groups.contents


def delta(node: WindowGroups, run: OperatorRun) -> Relation | None:
    """The affected partitions' new rows minus their old ones."""
    if node.growth is None or run.context.from_nothing:
        return groups.delta(node, run)
    change = run.small_delta(node.input)
    if change is None:
        return None
    growing = Appending(node, run, change)
    tails = growing.stored()
    grown = growing.extended(tails)
    rest = change if grown is None else grown.rest
    known = plus([negated(tails), grown.tails if grown else None])
    if known is not None:
        growing.store(known.consolidate())
    recomputed = None if rest is None else groups.moved(node, run, groups.restriction(node, rest))
    return groups.kept(node, run, plus([recomputed, grown.answer if grown else None]))
