"""Partitions that grow at their end, extended from their tails (see ``differential.growth``).

Tails are kept of partitions with many rows, once they have changed; a partition that changes elsewhere loses its tail,
and gets it back from the stored output when it changes again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.differential.groups import WindowGroups
from dbt_incremental_dd.differential.window_append import COPY, LAST, NUMBER, WindowAppend, was
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.logical.sql_types import sql_type
from dbt_incremental_dd.relation.engine import Measure
from dbt_incremental_dd.relation.keys import keys_of
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.render.groups import restriction, stored

if TYPE_CHECKING:
    from dbt_incremental_dd.render.operator import OperatorRun

_IS_NEW = "dd_is_new"
_IS_REVISED = "dd_is_revised"
_AMONG_NEW = "dd_among_new"
_NEW_ROWS = "dd_new_rows"
_PEERS = "dd_peers"
_TOTAL = "dd_total"


@dataclass(frozen=True)
class Appended:
    """``answer``: the change of the extended partitions' output; ``tails``: their new ones; ``rest``: the input's
    change in other partitions."""

    answer: Relation
    tails: Relation
    rest: Relation | None


class Appending:
    """One operator's partitions in one run; ``change`` is its input's delta."""

    def __init__(self, node: WindowGroups, run: OperatorRun, change: Relation) -> None:
        assert node.growth is not None and node.tail is not None
        self._node = node
        self._growth: WindowAppend = node.growth
        self._tail = node.tail
        self._run = run
        self._change = change
        self._partition = f"PARTITION BY {', '.join(node.keys) or 'TRUE'}"

    def stored(self) -> Relation | None:
        """The tails of partitions that change."""
        inner = self._run.context.inner.of(self._tail)
        rows = inner.contents(new=False, keys=restriction(self._node, self._change))
        return None if rows is None else rows.collected()

    def store(self, change: Relation) -> None:
        """Adds a change of tails to them."""
        self._run.context.inner.of(self._tail).append(change.localized(), self._run.context.at)

    def extended(self, tails: Relation | None) -> Appended | None:
        """The partitions that only grow at their end; None where there are none, or too much of anything."""
        if not self._change.groups_locally(self._node.keys) or (tails is not None and not tails.is_local):
            return None
        missing = self._others(self._change, tails)
        tails = plus([tails, None if missing is None else self._from_output(missing)])
        if tails is None or not tails.is_local:
            return None
        estimate = tails.estimate + self._change.estimate
        found = replace(self._computed(tails.expand()), estimate=estimate).collected()
        if not found.is_local or found.is_empty:
            return None
        answer = self._answer(found)
        return Appended(answer.consolidate(), self._tails(found), self._others(self._change, answer))

    def _others(self, rows: Relation, partitions: Relation | None) -> Relation | None:
        """The rows of other partitions than those."""
        if partitions is None or partitions.is_empty:
            return rows
        if not self._node.keys:
            return None
        others = rows.restrict(keys_of(partitions, self._node.keys).rows, self._node.keys, inside=False)
        return None if others.is_empty else others

    def _from_output(self, change: Relation) -> Relation | None:
        """Tails of these rows' partitions from their stored rows; None where none has many."""
        node, growth = self._node, self._growth
        old = stored(node, self._run, new=False, keys=restriction(node, change))
        old = None if old is None else self._large(old.localized(self._run.context.thresholds.recomputed_rows))
        if old is None or (old.is_local and old.estimate <= self._run.context.thresholds.recomputed_rows):
            return None
        tails = self._last(old.expand()).columns((*node.columns, NUMBER))
        return replace(tails, estimate=growth.rows * change.estimate, positive=True, consolidated=True).collected()

    def _large(self, rows: Relation) -> Relation | None:
        """The rows of partitions with many, as far as that is known."""
        keys = self._node.keys
        if not keys or not rows.groups_locally(keys):
            return rows
        counted = rows.group_by(keys, [Measure(_TOTAL, "sum", Expr(DIFF), "BIGINT")])
        large = counted.filter(Expr(f"{_TOTAL} > {self._run.context.thresholds.recomputed_rows}"))
        return None if large.is_empty else rows.restrict(large, keys)

    def _last(self, rows: Relation) -> Relation:
        """The tails of partitions of which these are all rows, but of those whose order cannot be told."""
        growth, keys = self._growth, self._node.keys
        order = _sql(growth.order)
        backwards = _sql(tuple(item.reversed for item in growth.order))
        last = rows.window([("dd_from_end", self._over("ROW_NUMBER()", backwards))])
        last = last.filter(Expr(f"dd_from_end <= {growth.rows + 1}"))
        if growth.by_rows:
            last = last.window(
                [("dd_rank", self._over("RANK()", order)), ("dd_row", self._over("ROW_NUMBER()", order))]
            )
            last = last.window([("dd_peers_before", self._over("MIN(dd_rank - dd_row)"))])
            last = last.filter(Expr("dd_peers_before = 0"))
        last = last.filter(Expr(f"dd_from_end <= {growth.rows}"))
        counted = rows.group_by(keys, [Measure(_TOTAL, "sum", Expr("1L"), "BIGINT")])
        return last.lookup(counted, keys, [(_TOTAL, _TOTAL)]).extend([(NUMBER, Expr(f"{_TOTAL} - dd_from_end + 1"))])

    def _computed(self, tails: Relation) -> Relation:
        """Tails and new rows of the partitions that grow, with the functions' values and final numbers."""
        growth, types = self._growth, {column.name: sql_type(column.type) for column in tails.schema}
        is_new, revised = f"{NUMBER} IS NULL", f"{NUMBER} > {LAST} - {growth.ahead}"
        rows = self._growing(tails).window(growth.functions)
        among_new = f"ROW_NUMBER() OVER ({self._partition}, {is_new} ORDER BY {_sql(growth.order)}, {COPY})"
        new_rows = self._over(f"SUM(CASE WHEN {is_new} THEN 1L ELSE 0L END)")
        rows = rows.window([(_AMONG_NEW, Expr(among_new)), (_NEW_ROWS, new_rows)])
        values = []
        for id, _ in growth.functions:
            is_right = f"{is_new} OR {revised}" if id in growth.revised else is_new
            values.append((id, Expr(f"CAST(CASE WHEN {is_right} THEN {id} ELSE {was(id)} END AS {types[id]})")))
        outputs = [
            *((id, Expr.column(id)) for id in self._node.input.columns),
            *values,
            (NUMBER, Expr(f"COALESCE({NUMBER}, {LAST} + {_AMONG_NEW})")),
            (_TOTAL, Expr(f"{LAST} + {_NEW_ROWS}")),
            (_IS_NEW, Expr(is_new)),
            (_IS_REVISED, Expr(f"{NUMBER} IS NOT NULL AND {revised}")),
            *((was(id), Expr.column(was(id))) for id in growth.revised),
        ]
        return rows.map(outputs, Expr("1L"))

    def _growing(self, tails: Relation) -> Relation:
        """Tails and new rows of partitions of which no row goes, and none comes before or beside the last one."""
        node, types = self._node, {column.name: sql_type(column.type) for column in tails.schema}
        own = [(id, Expr.column(id)) for id in node.input.columns]
        stored = [(was(id), Expr.column(id)) for id, _ in node.functions]
        absent = [(was(id), Expr(f"CAST(NULL AS {types[id]})")) for id, _ in node.functions]
        number = Expr.column(NUMBER)
        old = tails.map([*own, (NUMBER, number), (COPY, number), *stored])
        new = self._change.consolidate().copies(COPY)
        new = new.map([*own, (NUMBER, Expr("CAST(NULL AS BIGINT)")), (COPY, Expr.column(COPY)), *absent])
        both = plus([new, old])
        assert both is not None
        base = _sql(self._growth.order[: self._growth.peers])
        both = both.window(
            [
                (LAST, self._over(f"MAX({NUMBER})")),
                ("dd_least", self._over(f"MIN({DIFF})")),
                (_PEERS, self._over("DENSE_RANK()", base)),
            ]
        )
        end = self._over(f"MAX(CASE WHEN {NUMBER} = {LAST} THEN {_PEERS} END)")
        begin = self._over(f"MIN(CASE WHEN {NUMBER} IS NULL THEN {_PEERS} END)")
        both = both.window([("dd_end", end), ("dd_begin", begin)])
        return both.filter(Expr("dd_least > 0 AND dd_end < dd_begin"))

    def _over(self, function: str, order: str = "") -> Expr:
        """A window function of partitions, in an order."""
        return Expr(f"{function} OVER ({self._partition}{f' ORDER BY {order}' if order else ''})")

    def _answer(self, found: Relation) -> Relation:
        """New rows, and new values of the last ones in place of their old values."""
        columns, revised = self._node.columns, self._growth.revised
        parts = [found.filter(Expr(_IS_NEW)).columns(columns)]
        if revised:
            last = found.filter(Expr(_IS_REVISED))
            before = last.select([(id, was(id) if id in revised else id) for id in columns])
            parts += [last.columns(columns), before.negate()]
        answer = plus(parts)
        assert answer is not None
        return replace(answer, positive=not revised)

    def _tails(self, found: Relation) -> Relation:
        """The extended partitions' last rows."""
        kept = found.filter(Expr(f"{_TOTAL} - {NUMBER} < {self._growth.rows}"))
        return kept.columns((*self._node.columns, NUMBER))


def _sql(order: tuple[Order, ...]) -> str:
    return ", ".join(item.sql for item in order)
