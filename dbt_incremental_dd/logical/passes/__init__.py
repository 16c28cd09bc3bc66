"""Rewrites from plan to plan, one a file. ``PASSES`` is their order; each says what it requires and establishes."""

from __future__ import annotations

from collections.abc import Callable

from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.passes.connect_joins import connect_joins
from dbt_incremental_dd.logical.passes.flatten_joins import flatten_joins
from dbt_incremental_dd.logical.passes.lift_now import lift_now
from dbt_incremental_dd.logical.passes.merge_maps import merge_maps
from dbt_incremental_dd.logical.passes.prune_columns import prune_columns
from dbt_incremental_dd.logical.passes.push_filters import push_filters
from dbt_incremental_dd.logical.passes.share import share
from dbt_incremental_dd.logical.passes.split_distinct import split_distinct
from dbt_incremental_dd.logical.passes.top_k import top_k

PASSES: tuple[Callable[[Node], Node], ...] = (
    top_k,
    push_filters,
    connect_joins,
    flatten_joins,
    lift_now,
    split_distinct,
    share,
    prune_columns,
    merge_maps,
)


def optimize(plan: Node) -> Node:
    """All passes in order. The answer of the plan stays the same, and so do its columns."""
    for rewrite in PASSES:
        plan = rewrite(plan)
    return plan
