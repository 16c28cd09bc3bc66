"""Spark's engine: lazy, by public DataFrame operations. Nothing is computed before its rows are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold
from typing import TYPE_CHECKING, cast

from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF, Column, Schema
from dbt_incremental_dd.core.types import Struct
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.relation.engine import Branch, Kind, Measure, Outputs, Pairs, Running, Side
from dbt_incremental_dd.trace.spark_reader import consolidate, quote_name, quoted, struct

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_OTHER = "dd_diff_other"
_KEY = "dd_key_"
_HOW = {"inner": "inner", "left": "left", "semi": "left_semi", "anti": "left_anti"}


class SparkEngine:
    """Of DataFrames. Columns are given as SQL where Spark takes it: each call of a function of ``functions`` asks the
    JVM three times."""

    def select(self, rows: DataFrame, pairs: Pairs) -> DataFrame:
        return rows.selectExpr(*_renamed(pairs))

    def map(self, rows: DataFrame, outputs: Outputs) -> DataFrame:
        return rows.selectExpr(*_computed(outputs))

    def extend(self, rows: DataFrame, outputs: Outputs) -> DataFrame:
        return rows.selectExpr("*", *_computed(outputs))

    def filter(self, rows: DataFrame, predicate: Expr) -> DataFrame:
        return rows.where(predicate.sql)

    def union(self, parts: Sequence[DataFrame], *, is_little: bool) -> DataFrame:
        rows = fold(lambda one, other: one.unionByName(other), parts)
        return rows.coalesce(1) if is_little else rows

    def consolidate(self, rows: DataFrame, diffs: Sequence[str]) -> DataFrame:
        return consolidate(rows, diffs)

    def group_by(self, rows: DataFrame, keys: Sequence[str], measures: Sequence[Measure]) -> DataFrame:
        if not measures:
            return rows.selectExpr(*map(quote_name, keys)).distinct()
        aggregates = (F.expr(_named(_aggregate(measure), measure.name)) for measure in measures)
        return rows.groupBy(*map(quote_name, keys)).agg(*aggregates)

    def join(
        self,
        left: DataFrame,
        right: DataFrame,
        kind: Kind,
        equalities: Sequence[Equality],
        residual: Sequence[Expr],
        broadcast: Side | None,
    ) -> DataFrame:
        right = right.withColumnRenamed(DIFF, _OTHER)
        ours = left.hint("broadcast") if broadcast == "left" else left
        theirs = right.hint("broadcast") if broadcast == "right" else right
        joined = ours.join(theirs, _condition(equalities, residual), _HOW[kind])
        if kind in ("semi", "anti"):
            return joined
        times = _OTHER if kind == "inner" else f"coalesce({_OTHER}, 1L)"
        return joined.withColumn(DIFF, F.expr(f"{DIFF} * {times}")).drop(_OTHER)

    def restrict(
        self, rows: DataFrame, keys: DataFrame, columns: Sequence[str], *, inside: bool, is_small: bool
    ) -> DataFrame:
        other = keys.selectExpr(*_renamed([(_KEY + name, name) for name in columns]))
        other = other.hint("broadcast") if is_small else other
        return rows.join(other, _null_safe(columns), "left_semi" if inside else "left_anti")

    def lookup(
        self, rows: DataFrame, other: DataFrame, keys: Sequence[str], columns: Pairs, *, is_little: bool
    ) -> DataFrame:
        if is_little:
            return _looked_up_in_one_task(rows, other, keys, columns)
        named = other.selectExpr(*_renamed([*((_KEY + name, name) for name in keys), *columns]))
        return rows.join(named, _null_safe(keys), "left").drop(*(_KEY + name for name in keys))

    def running(
        self, rows: DataFrame, keys: Sequence[str], order: Sequence[Order], sums: Sequence[Running]
    ) -> DataFrame:
        partition = f"PARTITION BY {', '.join(map(quote_name, keys))}" if keys else ""
        ordering = f"ORDER BY {', '.join(item.sql for item in order)}" if order else ""
        found = []
        for s in sums:
            last = "CURRENT ROW" if s.through else "1 PRECEDING"
            over = f"{partition} {ordering} ROWS BETWEEN UNBOUNDED PRECEDING AND {last}"
            found.append(_named(f"coalesce(sum({s.value.sql}) OVER ({over}), 0L)", s.name))
        return rows.selectExpr("*", *found)

    def window(self, rows: DataFrame, functions: Outputs) -> DataFrame:
        return self.extend(rows, functions)

    def generate(self, rows: DataFrame, call: str, outputs: Sequence[str], *, outer: bool) -> DataFrame:
        aliases = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        return rows.selectExpr("*", f"{_outer(call) if outer else call} AS {aliases}")

    def unpivot(self, rows: DataFrame, branches: Sequence[Branch]) -> DataFrame:
        names = [name for name, _ in branches[0].columns]
        common = [name for name in names if all((name, name) in branch.columns for branch in branches)]
        own = [name for name in names if name not in common]
        structs = []
        for branch in branches:
            sources = dict(branch.columns)
            columns = _renamed([(name, sources[name]) for name in own])
            structs.append(f"struct({', '.join([*columns, f'CAST({branch.diff.sql} AS BIGINT) AS {DIFF}'])})")
        exploded = rows.selectExpr(*map(quote_name, common), f"explode(array({', '.join(structs)})) AS dd_row")
        exploded = exploded.where(f"dd_row.{DIFF} <> 0")
        columns = [quote_name(n) if n in common else _named(f"dd_row.{quote_name(n)}", n) for n in names]
        return exploded.selectExpr(*columns, f"dd_row.{DIFF} AS {DIFF}")

    def pack(self, rows: DataFrame, name: str, type: Struct, sources: Sequence[str]) -> DataFrame:
        kept = (quoted(column) for column in rows.columns if column not in sources)
        if not sources:
            nothing = F.lit(None).cast(struct(Schema((Column(name, type),)))[0].dataType)
            return rows.select(*kept, nothing.alias(name))
        fields = _renamed([(field.name, source) for source, field in zip(sources, type.fields, strict=False)])
        return rows.select(*kept, F.expr(_named(f"struct({', '.join(fields)})", name)))

    def unpack(self, rows: DataFrame, name: str, columns: Sequence[str]) -> DataFrame:
        packed, fields = quote_name(name), cast("StructType", rows.schema[name].dataType).names
        kept = (quote_name(column) for column in rows.columns if column != name)
        unpacked = (_named(f"{packed}.{quote_name(f)}", column) for column, f in zip(columns, fields, strict=False))
        return rows.selectExpr(*kept, *unpacked)

    def copies(self, rows: DataFrame, number: str) -> DataFrame:
        return rows.selectExpr("*", _named(f"explode(sequence(1L, abs({DIFF})))", number))

    def aggregate(self, rows: DataFrame, keys: Sequence[str], outputs: Outputs) -> DataFrame:
        return rows.groupBy(*map(quote_name, keys)).agg(*map(F.expr, _computed(outputs)))

    def first(self, rows: DataFrame, order: Sequence[Order], count: int) -> DataFrame:
        return (rows.orderBy(*map(_directed, order)) if order else rows).limit(count)


def _named(sql: str, name: str) -> str:
    return f"{sql} AS {quote_name(name)}"


def _renamed(pairs: Pairs) -> list[str]:
    return [_named(quote_name(source), name) for name, source in pairs]


def _computed(outputs: Outputs) -> list[str]:
    return [_named(expr.sql, name) for name, expr in outputs]


def _outer(call: str) -> str:
    name, rest = call.split("(", 1)
    return call if name.strip().lower().endswith("_outer") else f"{name.strip()}_outer({rest}"


def _aggregate(measure: Measure) -> str:
    value = measure.value.sql
    if measure.function == "sum":
        return f"CAST(coalesce(sum({value}), 0) AS {measure.dtype})"
    return f"{measure.function}({value})"


def _condition(equalities: Sequence[Equality], residual: Sequence[Expr]) -> Expression:
    parts = [f"({e.left.sql}) {'<=>' if e.null_safe else '='} ({e.right.sql})" for e in equalities]
    parts += [f"({predicate.sql})" for predicate in residual]
    return F.expr(" AND ".join(parts) or "true")


def _null_safe(columns: Sequence[str]) -> Expression:
    """Each of the columns equal to the one whose name has a prefix, NULL to NULL."""
    equal = (f"{quote_name(name)} <=> {quote_name(_KEY + name)}" for name in columns)
    return F.expr(" AND ".join(equal) or "true")


def _looked_up_in_one_task(rows: DataFrame, other: DataFrame, keys: Sequence[str], columns: Pairs) -> DataFrame:
    """Grouped instead of joined: of few rows nothing is then sorted or sent."""
    own = [name for name in rows.columns if name not in keys]
    marked = rows.selectExpr("*", "true AS dd_here")
    beside = other.selectExpr(*map(quote_name, keys), *_renamed(columns))
    both = marked.unionByName(beside, allowMissingColumns=True).coalesce(1)
    values = [*own, "dd_here", *(name for name, _ in columns)]
    found = both.groupBy(*map(quote_name, keys)).agg(
        *(F.expr(_named(f"any_value({quote_name(name)}, true)", name)) for name in values)
    )
    return found.where("dd_here").selectExpr(*map(quote_name, rows.columns), *(quote_name(name) for name, _ in columns))


def _directed(item: Order) -> Expression:
    column = F.expr(item.expr.sql)
    if item.descending:
        return column.desc_nulls_first() if item.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if item.nulls_first else column.asc_nulls_last()
