"""A relation: a collection of updates on its way through a plan, on the driver where it is small, else in Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.core.types import Struct
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact, giving_up
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.relation.engine import Branch, Engine, Kind, Measure, Outputs, Pairs, Running, Side
from dbt_incremental_dd.relation.placed_rows import PlacedRows
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.spark_reader import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG = logging.getLogger(__name__)
"""Tells at DEBUG why something is left to Spark."""
_DIFF = Expr.column(DIFF)
_COPY = "dd_copy"


@dataclass(frozen=True, eq=False)
class Relation(PlacedRows):
    """Updates of one time: columns by name, and ``dd_diff``. ``engine.Engine`` states the law of each operation.

    ``positive``: every diff is at least 1. ``consolidated``: no two rows are equal. An operation runs on the driver if
    all of its operands are there and Arrow's result is certainly Spark's; otherwise it runs in Spark.
    """

    positive: bool = False
    consolidated: bool = False

    @staticmethod
    def of(workspace: Workspace, arrow: pa.Table, schema: Schema, *, positive: bool = False) -> Relation:
        """Rows that are on the driver."""
        return Relation(workspace, Table(arrow, schema), arrow.num_rows, positive=positive)

    @staticmethod
    def one(workspace: Workspace, outputs: Outputs) -> Relation:
        """One row, of constants."""
        nothing = Table(pa.table({DIFF: pa.array([1], pa.int64())}), Schema((DIFF_COLUMN,)))
        return Relation(workspace, nothing, 1, positive=True, consolidated=True).map(outputs)

    # Of rows one by one.

    def select(self, pairs: Pairs) -> Relation:
        """The columns (name, source) and ``dd_diff``; equal rows may become of different ones."""
        pairs = [*pairs, (DIFF, DIFF)]
        keeps_all = self.consolidated and {source for _, source in pairs} >= set(self.names)
        rows = self._apply(lambda engine, rows: engine.select(rows, pairs))
        return self._made(rows, positive=self.positive, consolidated=keeps_all)

    def columns(self, names: Sequence[str]) -> Relation:
        """Those columns and ``dd_diff``."""
        return self.select([(name, name) for name in names])

    def map(self, outputs: Outputs, diff: Expr = _DIFF) -> Relation:
        """Each row's values; ``diff``: its multiplicity from now on."""
        sources = [(name, expr.as_column) for name, expr in outputs]
        plain = [(name, source) for name, source in sources if source is not None]
        if len(plain) == len(sources) and diff is _DIFF:
            return self.select(plain)
        outputs = [*outputs, (DIFF, diff)]
        rows = self._apply(lambda engine, rows: engine.map(rows, outputs))
        return self._made(rows, positive=self.positive and diff is _DIFF)

    def extend(self, outputs: Outputs) -> Relation:
        """The rows with further columns."""
        rows = self._apply(lambda engine, rows: engine.extend(rows, outputs))
        return self._made(rows, positive=self.positive, consolidated=self.consolidated)

    def update(self, outputs: Outputs) -> Relation:
        """The rows with other values in some columns."""
        changed = dict(outputs)
        return self.map([(name, changed.get(name, same)) for name, same in self._unchanged()])

    def _unchanged(self) -> Outputs:
        """Every column as it is, ``dd_diff`` aside."""
        return [(name, Expr(quote_name(name))) for name in self.names if name != DIFF]

    def filter(self, predicate: Expr) -> Relation:
        """The rows for which the predicate is true."""
        rows = self._apply(lambda engine, rows: engine.filter(rows, predicate))
        return self._made(rows, positive=self.positive, consolidated=self.consolidated)

    def with_diff(self, diff: Expr) -> Relation:
        """The rows with other diffs; rows whose diff is then 0 are dropped."""
        changed = self.map(self._unchanged(), diff).filter(Expr(f"{DIFF} <> 0"))
        return replace(changed, consolidated=self.consolidated)

    def negate(self) -> Relation:
        """All diffs negated."""
        return replace(self.map(self._unchanged(), Expr(f"-{DIFF}")), consolidated=self.consolidated)

    def once(self) -> Relation:
        """Each row of a multiset with a diff of 1."""
        found = self.map(self._unchanged(), Expr("1L"))
        return replace(found, positive=True, consolidated=self.consolidated)

    def generate(self, call: str, outputs: Sequence[str], *, outer: bool) -> Relation:
        """For each row, the rows that a generator makes of it."""
        rows = self._apply(lambda engine, rows: engine.generate(rows, call, outputs, outer=outer))
        return self._made(rows, positive=self.positive)

    def unpivot(self, branches: Sequence[Branch]) -> Relation:
        """One row per branch for each row; rows with a diff of 0 are dropped."""
        rows = self._apply(lambda engine, rows: engine.unpivot(rows, branches))
        return self._made(rows, estimate=len(branches) * self.estimate)

    def pack(self, name: str, type: Struct, sources: Sequence[str]) -> Relation:
        """The rows with a struct in place of these columns, its fields in this order; without columns it is NULL."""
        rows = self._apply(lambda engine, rows: engine.pack(rows, name, type, sources))
        return self._made(rows, positive=self.positive, consolidated=self.consolidated)

    def unpack(self, name: str, columns: Sequence[str]) -> Relation:
        """The rows with a struct's first fields as columns in its place."""
        rows = self._apply(lambda engine, rows: engine.unpack(rows, name, columns))
        return self._made(rows, positive=self.positive)

    # Of all rows.

    def consolidate(self, diffs: Sequence[str] = (DIFF,)) -> Relation:
        """The same updates, equal rows summed and zeros dropped."""
        if self.consolidated:
            return self
        rows = self._apply(lambda engine, rows: engine.consolidate(rows, diffs))
        return replace(self, rows=rows, consolidated=True)

    def multiset(self) -> Relation:
        """The same rows with diffs of at least 1: of contents, whose diffs are the sums of updates."""
        return self if self.positive else replace(self.consolidate(), positive=True)

    def copies(self, number: str) -> Relation:
        """Each row as often as its diff's absolute value, numbered from 1; diffs stay."""
        rows = self._apply(lambda engine, rows: engine.copies(rows, number))
        return self._made(rows, positive=self.positive)

    def expand(self) -> Relation:
        """Each row of a multiset as often as it counts, with a diff of 1."""
        rows = self.multiset()
        if rows.table is not None and pc.all(pc.equal(rows.table.arrow[DIFF], 1)).as_py() is not False:
            return rows
        names = [name for name, _ in rows._unchanged()]
        return replace(rows.copies(_COPY).columns(names).once(), consolidated=False)

    def aggregate(self, keys: Sequence[str], outputs: Outputs) -> Relation:
        """Each group's keys, and any aggregates of its rows, each of which counts once; with a diff of 1."""
        rows = self._apply(lambda engine, rows: engine.aggregate(rows, keys, [*outputs, (DIFF, Expr("1L"))]))
        return self._made(rows, positive=True, consolidated=True)

    def first(self, order: Sequence[Order], count: int) -> Relation:
        """The first rows in that order, at most so many; each counts once, whatever its diff."""
        rows = self._apply(lambda engine, rows: engine.first(rows, order, count))
        return self._made(rows, estimate=count, positive=self.positive, consolidated=self.consolidated)

    def count(self) -> int:
        """The sum of all diffs."""
        total = self.group_by((), [Measure("dd_count", "sum", Expr(DIFF), "BIGINT")]).localized(1).table
        assert total is not None
        return int(total.arrow["dd_count"][0].as_py())

    def group_by(self, keys: Sequence[str], measures: Sequence[Measure]) -> Relation:
        """Each group's keys and measures; ``dd_diff`` is among these, if it is to be there."""
        rows = self._apply(lambda engine, rows: engine.group_by(rows, keys, measures))
        return self._made(rows, estimate=self.estimate if keys else 1, consolidated=True)

    def distinct(self, keys: Sequence[str]) -> Relation:
        """The different values of some columns, each once; of no columns one row, even of nothing."""
        return self.group_by(keys, []).once() if keys else replace(self.group_by((), [_ONE]), positive=True)

    def running(self, keys: Sequence[str], order: Sequence[Order], sums: Sequence[Running]) -> Relation:
        """The rows with running sums beside them, in that order within equal keys."""
        rows = self._apply(lambda engine, rows: engine.running(rows, keys, order, sums))
        return self._made(rows, positive=self.positive, consolidated=self.consolidated)

    def window(self, functions: Outputs) -> Relation:
        """The rows with values of window functions beside them; each row counts once."""
        rows = self._apply(lambda engine, rows: engine.window(rows, functions))
        return self._made(rows, positive=self.positive)

    # Of two relations.

    def join(
        self, other: Relation, kind: Kind, equalities: Sequence[Equality], residual: Sequence[Expr] = ()
    ) -> Relation:
        """The rows that match, or do not; the other side is a multiset unless ``kind`` is inner."""
        other = other if kind == "inner" else other.multiset()
        sides = self._side(other, kind)
        rows = self._apply(
            lambda engine, left, right: engine.join(left, right, kind, equalities, residual, sides), other
        )
        estimate = self.estimate if kind in ("semi", "anti") else max(self.estimate, other.estimate)
        return self._made(rows, estimate=estimate, positive=self.positive and other.positive)

    def _side(self, other: Relation, kind: Kind) -> Side | None:
        """The smaller side is broadcast if it may be."""
        most = self.workspace.thresholds.broadcast_rows
        if self.estimate <= most and kind == "inner" and self.estimate <= other.estimate:
            return "left"
        return "right" if other.estimate <= most else None

    def restrict(self, keys: Relation, columns: Sequence[str], *, inside: bool = True) -> Relation:
        """The rows whose columns are, or are not, among the keys; NULL equals NULL."""
        is_small = keys.estimate <= self.workspace.thresholds.broadcast_rows
        rows = self._apply(
            lambda engine, rows, others: engine.restrict(rows, others, columns, inside=inside, is_small=is_small), keys
        )
        return self._made(rows, positive=self.positive, consolidated=self.consolidated)

    def lookup(self, other: Relation, keys: Sequence[str], columns: Pairs, *, of_groups: bool = False) -> Relation:
        """The rows, with columns (name, source) of the row of ``other`` with the same keys beside them, or NULLs.

        ``other`` has each key at most once; with ``of_groups`` this relation does, too.
        """
        is_little = of_groups and self.estimate + other.estimate <= self.workspace.thresholds.task_rows
        rows = self._apply(
            lambda engine, rows, others: engine.lookup(rows, others, keys, columns, is_little=is_little), other
        )
        return self._made(rows, positive=self.positive, consolidated=self.consolidated)

    def split_by(self, column: str) -> dict[Any, Relation]:
        """The rows of each value of a column of integers."""
        found = self.materialized()
        if isinstance(found.rows, Table):
            values = pc.unique(found.rows.arrow[column]).to_pylist()
            if len(values) == 1:
                return {values[0]: found}
        else:
            values = [row[0] for row in found.rows.select(column).distinct().collect()]
        return {value: found.filter(Expr(f"{column} = {value}L")) for value in sorted(values)}

    def _apply(self, operation: Callable[..., Any], *others: Relation) -> Any:
        """The one place where what the driver cannot do exactly is handed over to Spark."""
        operands = (self, *others)
        tables = [operand.rows for operand in operands if isinstance(operand.rows, Table)]
        if len(tables) == len(operands):
            engine: Engine[Table] = self.workspace.on_driver
            try:
                with giving_up(", ".join(self.names)):
                    return operation(engine, *tables)
            except NotExact as why:
                _LOG.debug("for Spark: %s", why)
        return operation(self.workspace.in_spark, *(operand.frame for operand in operands))

    def _made(
        self,
        rows: Table | DataFrame,
        *,
        estimate: int | None = None,
        positive: bool = False,
        consolidated: bool = False,
    ) -> Relation:
        known = rows.num_rows if isinstance(rows, Table) else self.estimate if estimate is None else estimate
        return Relation(self.workspace, rows, known, positive=positive, consolidated=consolidated)


_ONE = Measure(DIFF, "max", Expr("1L"), "BIGINT")


def plus(parts: Sequence[Relation | None]) -> Relation | None:
    """The sum of several deltas over the same columns; None where all are empty."""
    present = [part for part in parts if part is not None]
    if len(present) < 2:
        return present[0] if present else None
    first, *others = present
    estimate = sum(part.estimate for part in present)
    is_little = estimate <= first.workspace.thresholds.task_rows
    rows = first._apply(lambda engine, *rows: engine.union(rows, is_little=is_little), *others)
    return first._made(rows, estimate=estimate, positive=all(part.positive for part in present))


def negated(relation: Relation | None) -> Relation | None:
    """All diffs negated; None of None."""
    return None if relation is None else relation.negate()
