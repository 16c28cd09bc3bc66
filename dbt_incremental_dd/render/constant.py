"""Constant: there from the beginning, never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Constant
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.query import constant
from dbt_incremental_dd.relation.relation import Relation

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

_ROWS = 1_000
"""As many as it is taken to have."""


def delta(node: Constant, run: OperatorRun) -> Relation | None:
    """All of it where the model is built from nothing, else nothing."""
    return contents(node, run, new=True, keys=None) if run.context.from_nothing else None


def contents(node: Constant, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The query's rows, each once."""
    if node.is_one_row:
        return Relation.one(run.context.workspace, [(node.ids[0], Expr("1"))])
    rows = constant(run.context.workspace, node.sql, node.ids, estimate=_ROWS)
    return rows if keys is None else keys.restricted(rows)
