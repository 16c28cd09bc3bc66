"""Partitions that grow at their end, extended from their tails (see ``differential.growth``).

Tails are kept of partitions with many rows, once they have changed; a partition that changes elsewhere loses its tail,
and gets it back from the stored output when it changes again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.differential.groups import WindowGroups
from dbt_incremental_dd.differential.growth import COPY, LAST, NUMBER, Growth, was
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.render.groups import restriction, stored
from dbt_incremental_dd.render.keys import keys_of, null_safe
from dbt_incremental_dd.render.rows import Rows, consolidated, expanded, plus
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import is_plain
from dbt_incremental_dd.trace.local import Local, member_mask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dbt_incremental_dd.render.operator import OperatorRun

_IS_NEW = "dd_is_new"
_IS_REVISED = "dd_is_revised"
_PEERS = "dd_peers"
_TOTAL = "dd_total"


@dataclass(frozen=True)
class Grown:
    """``answer``: the change of the extended partitions' output; ``tails``: their new ones; ``rest``: the input's
    change in other partitions."""

    answer: Rows
    tails: Rows
    rest: Rows | None


class Growing:
    """One operator's partitions in one run; ``change`` is its input's delta."""

    def __init__(self, node: WindowGroups, r: OperatorRun, change: Rows) -> None:
        assert node.growth is not None and node.tail is not None
        self._node = node
        self._growth: Growth = node.growth
        self._tail = node.tail
        self._r = r
        self._change = change
        self._keys = ", ".join(node.keys) or "TRUE"

    def stored(self) -> Rows | None:
        """The tails of partitions that change."""
        inner = self._r.context.inner.of(self._tail)
        rows = inner.contents(new=False, keys=restriction(self._node, self._change))
        return None if rows is None else self._r.context.brought(rows)

    def store(self, change: Rows) -> None:
        """Adds a change of tails to them."""
        self._r.context.inner.of(self._tail).append(self._r.context.localized(change), self._r.context.at)

    def extended(self, tails: Rows | None) -> Grown | None:
        """The partitions that only grow at their end; None where there are none, or too much of anything."""
        if self._change.local is None or not is_plain(self._change.schema.select(self._node.keys)):
            return None
        if tails is not None and tails.local is None:
            return None
        missing = self._others(self._change, tails)
        tails = plus([tails, None if missing is None else self._from_output(missing)])
        if tails is None or tails.local is None:
            return None
        found = self._r.context.brought(Rows(self._computed(expanded(tails)), tails.estimate + self._change.estimate))
        table = found.local
        if table is None or not table.num_rows:
            return None
        answer = self._answer(found, table)
        return Grown(consolidated(answer), self._tails(found, table), self._others(self._change, answer))

    def _others(self, rows: Rows, partitions: Rows | None) -> Rows | None:
        """The rows of other partitions than those."""
        if partitions is None or not partitions.estimate:
            return rows
        keys = keys_of(partitions, self._node.keys)
        assert isinstance(rows.source, Local) and keys.table is not None
        if not self._node.keys:
            return None
        table = rows.source.table
        table = table.filter(pc.invert(member_mask(table, keys.table, self._node.keys)))
        return replace(rows, source=rows.source.with_table(table), estimate=table.num_rows) if table.num_rows else None

    def _from_output(self, change: Rows) -> Rows | None:
        """Tails of these rows' partitions from their stored rows; None where none has many."""
        node, growth = self._node, self._growth
        old = stored(node, self._r, new=False, keys=restriction(node, change))
        old = None if old is None else self._large(self._r.context.localized(old, limits.RECOMPUTED_ROWS))
        if old is None or (old.local is not None and old.estimate <= limits.RECOMPUTED_ROWS):
            return None
        tails = self._last(expanded(old)).select(*node.columns, NUMBER, F.lit(1).cast("bigint").alias(DIFF))
        return self._r.context.brought(Rows(tails, growth.rows * change.estimate, positive=True, consolidated=True))

    def _large(self, rows: Rows) -> Rows | None:
        """The rows of partitions with many, as far as that can be told on the driver."""
        local, keys = rows.source, list(self._node.keys)
        if not keys or not isinstance(local, Local):
            return rows
        counted = local.table.group_by(keys).aggregate([(DIFF, "sum")])
        large = counted.filter(pc.greater(counted[f"{DIFF}_sum"], limits.RECOMPUTED_ROWS))
        if not large.num_rows:
            return None
        table = local.table.filter(member_mask(local.table, large, keys))
        return replace(rows, source=local.with_table(table), estimate=table.num_rows)

    def _last(self, rows: DataFrame) -> DataFrame:
        """The tails of partitions of which these are all rows, but of those whose order cannot be told."""
        growth, keys = self._growth, self._node.keys
        order = _sql(growth.order)
        backwards = _sql(tuple(item.reversed for item in growth.order))
        from_end = F.expr(f"ROW_NUMBER() OVER (PARTITION BY {self._keys} ORDER BY {backwards})").alias("dd_from_end")
        last = rows.select("*", from_end).where(F.col("dd_from_end") <= growth.rows + 1)
        if growth.by_rows:
            alike = F.expr(f"RANK() OVER (PARTITION BY {self._keys} ORDER BY {order})").alias("dd_rank")
            number = F.expr(f"ROW_NUMBER() OVER (PARTITION BY {self._keys} ORDER BY {order})").alias("dd_row")
            unclear = F.expr(f"MAX(dd_rank <> dd_row) OVER (PARTITION BY {self._keys})").alias("dd_unclear")
            last = last.select("*", alike, number).select("*", unclear).where("NOT dd_unclear")
        counted = rows.groupBy(*(F.col(id).alias(f"dd_key_{id}") for id in keys)).agg(F.count("*").alias(_TOTAL))
        last = last.where(F.col("dd_from_end") <= growth.rows)
        last = last.join(F.broadcast(counted), null_safe({id: f"dd_key_{id}" for id in keys}))
        return last.withColumn(NUMBER, F.col(_TOTAL) - F.col("dd_from_end") + 1)

    def _computed(self, tails: DataFrame) -> DataFrame:
        """Tails and new rows of the partitions that grow, with the functions' values and final numbers."""
        growth, types = self._growth, dict(tails.dtypes)
        frame = self._growing(tails)
        frame = frame.select("*", *(F.expr(expr.sql).alias(id) for id, expr in growth.functions))
        is_new, revised = f"{NUMBER} IS NULL", f"{NUMBER} > {LAST} - {growth.ahead}"
        values = []
        for id, _ in growth.functions:
            is_right = f"{is_new} OR {revised}" if id in growth.revised else is_new
            value = F.expr(f"CASE WHEN {is_right} THEN {id} ELSE {was(id)} END")
            values.append(value.cast(types[id]).alias(id))
        among_new = f"OVER (PARTITION BY {self._keys}, {is_new} ORDER BY {_sql(growth.order)}, {COPY})"
        return frame.select(
            *self._node.input.columns,
            *values,
            F.expr(f"COALESCE({NUMBER}, {LAST} + ROW_NUMBER() {among_new})").alias(NUMBER),
            F.expr(f"{LAST} + COUNT_IF({is_new}) OVER (PARTITION BY {self._keys})").alias(_TOTAL),
            F.expr(is_new).alias(_IS_NEW),
            F.expr(f"{NUMBER} IS NOT NULL AND {revised}").alias(_IS_REVISED),
            *(F.col(was(id)) for id in growth.revised),
        )

    def _growing(self, tails: DataFrame) -> DataFrame:
        """Tails and new rows of partitions of which no row goes, and none comes before or beside the last one."""
        node = self._node
        values = (F.col(id).alias(was(id)) for id, _ in node.functions)
        stored = tails.select(*node.input.columns, NUMBER, F.col(NUMBER).alias(COPY), *values)
        copies = F.explode(F.expr(f"SEQUENCE(1L, ABS({DIFF}))"))
        rows = consolidated(self._change).frame.withColumn(COPY, copies)
        both = rows.unionByName(stored, allowMissingColumns=True).coalesce(1)
        partition = f"PARTITION BY {self._keys}"
        base = _sql(self._growth.order[: self._growth.peers])
        both = both.select(
            "*",
            F.expr(f"MAX({NUMBER}) OVER ({partition})").alias(LAST),
            F.expr(f"MIN({DIFF}) OVER ({partition})").alias("dd_least"),
            F.expr(f"DENSE_RANK() OVER ({partition} ORDER BY {base})").alias(_PEERS),
        )
        end = f"MAX(CASE WHEN {NUMBER} = {LAST} THEN {_PEERS} END) OVER ({partition})"
        begin = f"MIN(CASE WHEN {NUMBER} IS NULL THEN {_PEERS} END) OVER ({partition})"
        both = both.select("*", F.expr(f"{end} < {begin}").alias("dd_is_after"))
        return both.where("dd_least > 0 AND dd_is_after")

    def _answer(self, found: Rows, table: pa.Table) -> Rows:
        """New rows, and new values of the last ones in place of their old values."""
        columns, revised = self._node.columns, self._growth.revised
        parts = [_with_diff(table.filter(table[_IS_NEW]).select(list(columns)), 1)]
        if revised:
            last = table.filter(table[_IS_REVISED])
            before = [last[was(id)] if id in revised else last[id] for id in columns]
            parts.append(_with_diff(last.select(list(columns)), 1))
            parts.append(_with_diff(pa.table(before, names=list(columns)), -1))
        made = self._rows(found, pa.concat_tables(parts), (*columns, DIFF))
        return replace(made, positive=not revised, consolidated=not revised)

    def _tails(self, found: Rows, table: pa.Table) -> Rows:
        """The extended partitions' last rows."""
        kept = table.filter(pc.less(pc.subtract(table[_TOTAL], table[NUMBER]), self._growth.rows))
        names = (*self._node.columns, NUMBER)
        return self._rows(found, _with_diff(kept.select(list(names)), 1), (*names, DIFF))

    def _rows(self, found: Rows, table: pa.Table, names: tuple[str, ...]) -> Rows:
        types = {column.name: column for column in (*found.schema, DIFF_COLUMN)}
        source = Local(self._r.context.spark, table, Schema(tuple(types[name] for name in names)))
        return Rows(source, table.num_rows)


def _with_diff(table: pa.Table, diff: int) -> pa.Table:
    return table.append_column(DIFF, pa.array([diff] * table.num_rows, pa.int64()))


def _sql(order: tuple[Order, ...]) -> str:
    return ", ".join(item.sql for item in order)
