"""Of partitions whose functions only look back, the rows from the first changed one on: those before it keep their
values, so that nothing of them is compared (see ``differential.window_reach``)."""

from __future__ import annotations

from functools import lru_cache

from dbt_incremental_dd.core.types import DATE, INTEGERS, TIMESTAMP, TIMESTAMP_NTZ
from dbt_incremental_dd.differential.groups import WindowGroups
from dbt_incremental_dd.differential.window_reach import common_order
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.logical.sql_types import sql_type
from dbt_incremental_dd.relation.engine import Measure
from dbt_incremental_dd.relation.relation import Relation

_FROM, _UNKNOWN = "dd_from", "dd_unknown"
_ORDERED = {*INTEGERS, DATE, TIMESTAMP, TIMESTAMP_NTZ}
"""Types that the driver compares as Spark does."""


class Suffix:
    """``change``: the delta of the window's input."""

    def __init__(self, node: WindowGroups, change: Relation | None) -> None:
        self._node = node
        self._order = _order(node) if change is not None and change.groups_locally(node.keys) and node.keys else None
        self._first: Relation | None = None
        if self._order is not None and change is not None:
            self._first = self._first_changed(self._order.expr.sql, change)

    def of(self, rows: Relation | None) -> Relation | None:
        """The rows of the partitions that do not come before all of the changed ones, peers included."""
        if rows is None or self._first is None or self._order is None or not rows.is_local:
            return rows
        column = self._order.expr.sql
        wide = rows.lookup(self._first, self._node.keys, [(_FROM, _FROM), (_UNKNOWN, _UNKNOWN)])
        is_before = f"{column} {'>' if self._order.descending else '<'} {_FROM}"
        kept = wide.filter(Expr(f"NOT coalesce({_UNKNOWN} = 0L AND {is_before}, FALSE)"))
        return kept.columns(self._node.columns)

    def _first_changed(self, column: str, change: Relation) -> Relation | None:
        """Of each partition the least changed value of the order, and how many are NULL."""
        assert self._order is not None
        kind = next(one.type for one in change.schema if one.name == column)
        if kind not in _ORDERED:
            return None
        ends = Measure(_FROM, "max" if self._order.descending else "min", Expr(column), sql_type(kind))
        nulls = Measure(_UNKNOWN, "sum", Expr(f"CASE WHEN {column} IS NULL THEN 1L ELSE 0L END"), "BIGINT")
        return change.group_by(self._node.keys, [ends, nulls])


def _order(node: WindowGroups) -> Order | None:
    order = _common_order(tuple(function for _, function in node.functions))
    return order if order is not None and order.expr.as_column in node.input.columns else None


@lru_cache(maxsize=1024)
def _common_order(functions: tuple[Expr, ...]) -> Order | None:
    return common_order(functions)
