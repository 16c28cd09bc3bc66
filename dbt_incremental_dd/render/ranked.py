"""The rows of a top-k: those whose copies come, in its order, after ``offset`` others and before ``limit`` more."""

from __future__ import annotations

from dataclasses import replace

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.groups import TopGroups
from dbt_incremental_dd.differential.top import KeptTop
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.relation.engine import Running
from dbt_incremental_dd.relation.relation import Relation

BEFORE = "dd_before"
"""How many rows come before a row and its copies."""


def ordering(node: TopGroups | KeptTop) -> list[Order]:
    """The operator's order, then its ties."""
    return [*node.order, *(Order(Expr.column(id), descending=False, nulls_first=True) for id in node.ties)]


def top(node: TopGroups | KeptTop, rows: Relation) -> Relation:
    """In each group of a multiset the rows that are asked for."""
    ranked = rows.running(node.keys, ordering(node), [Running(BEFORE, Expr.column(DIFF))])
    end = f"{BEFORE} + {DIFF}"
    last = end if node.limit is None else f"least({end}, {node.offset + node.limit}L)"
    count = Expr(f"{last} - greatest({BEFORE}, {node.offset}L)")
    found = ranked.map([(id, Expr.column(id)) for id in node.columns], count).filter(Expr(f"{DIFF} > 0"))
    return replace(found, positive=True, consolidated=rows.consolidated)
