"""The meaning of a logical plan, straight from the operators' definitions: one DataFrame, no increments."""

from __future__ import annotations

import itertools
from functools import reduce as fold
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import (
    Constant,
    Distinct,
    Fallback,
    Filter,
    FlatMap,
    Get,
    Join,
    Map,
    Negate,
    OuterJoin,
    Reduce,
    SemiJoin,
    Threshold,
    TopK,
    Union,
    Window,
)
from dbt_incremental_dd.logical.recursion import Bound, Fixpoint, Hoisted, Recur
from dbt_incremental_dd.trace.spark_reader import no_rows, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBERS = itertools.count()
_HELD: list[tuple[Fixpoint, dict[str, DataFrame]]] = []
"""The recursions that are being iterated, the innermost last, and what their bindings have."""


def frame(node: Node, spark: SparkSession) -> DataFrame:  # noqa: C901 - one line for each operator
    """The rows of a plan without negative multiplicities; columns are called by their ids."""
    match node:
        case Get():
            table = spark.table(node.collection)
            return table.select(*(F.col(f"`{name}`").alias(id) for id, name in node.outputs))
        case Constant():
            return spark.sql(node.sql).toDF(*node.ids)
        case Map():
            return frame(node.input, spark).select(*(F.expr(e.sql).alias(id) for id, e in node.outputs))
        case Filter():
            return frame(node.input, spark).where(node.predicate.sql)
        case FlatMap():
            return _flat_map(node, spark)
        case Join() | OuterJoin() | SemiJoin():
            return _join(node, spark)
        case Reduce():
            return _reduce(node, spark)
        case Distinct():
            return frame(node.input, spark).distinct()
        case TopK():
            return _top_k(node, spark)
        case Window():
            functions = (F.expr(e.sql).alias(id) for id, e in node.functions)
            return frame(node.input, spark).select(*node.input.columns, *functions)
        case Union():
            return fold(lambda a, b: a.union(b), (frame(o, spark) for o in node.operands)).toDF(*node.ids)
        case Threshold():
            return _threshold(node, spark)
        case Fallback():
            return _fallback(node, spark)
        case Bound() | Recur() | Hoisted():
            return _recursive(node, spark)
    raise AssertionError(f"{type(node).__name__} stands alone")


def _flat_map(node: FlatMap, spark: SparkSession) -> DataFrame:
    if node.generator.sql.lower().startswith(("window(", "session_window(")):
        return frame(node.input, spark).selectExpr("*", f"{node.generator.sql} AS {node.outputs[0]}")
    view = _view(frame(node.input, spark))
    outer = "OUTER " if node.outer else ""
    sql = f"SELECT * FROM {view} LATERAL VIEW {outer}{node.generator.sql} g AS {', '.join(node.outputs)}"
    return spark.sql(sql)


def _join(node: Join | OuterJoin | SemiJoin, spark: SparkSession) -> DataFrame:
    on = " AND ".join(f"({p.sql})" for p in node.on) or "true"
    if isinstance(node, Join):
        return fold(lambda a, b: a.crossJoin(b), (frame(o, spark) for o in node.operands)).where(on)
    kinds = {"left": "left", "full": "full"}
    how = ("left_anti" if node.anti else "left_semi") if isinstance(node, SemiJoin) else kinds[node.kind]
    return frame(node.left, spark).join(frame(node.right, spark), F.expr(on), how)


def _reduce(node: Reduce, spark: SparkSession) -> DataFrame:
    rows = frame(node.input, spark)
    aggregates = [F.expr(a.sql.sql).alias(a.id) for a in node.aggregates]
    if not aggregates:
        assert node.keys, "a Reduce of nothing at all"
        return rows.select(*node.keys).distinct()
    assert bool(node.keys) != node.global_row
    return rows.groupBy(*node.keys).agg(*aggregates)


def _top_k(node: TopK, spark: SparkSession) -> DataFrame:
    """Ties by all columns that have an order."""
    rows = frame(node.input, spark)
    ties = [f.name for f in rows.schema if "map<" not in f.dataType.simpleString() and "variant" not in str(f.dataType)]
    order = ", ".join([*(item.sql for item in node.order), *ties]) or "1"
    partition = f"PARTITION BY {', '.join(node.keys)} " if node.keys else ""
    numbered = rows.withColumn("dd_n", F.expr(f"row_number() OVER ({partition}ORDER BY {order})"))
    last = "true" if node.limit is None else f"dd_n <= {node.offset + node.limit}"
    return numbered.where(f"dd_n > {node.offset} AND {last}").drop("dd_n")


def _threshold(node: Threshold, spark: SparkSession) -> DataFrame:
    """Positive parts except all negative ones."""
    positive: list[DataFrame] = []
    negative: list[DataFrame] = []
    _signed(node.input, spark, positive, negative)
    added = fold(lambda a, b: a.union(b), positive)
    removed = fold(lambda a, b: a.union(b), negative, added.limit(0))
    return added.exceptAll(removed).toDF(*node.columns)


def _signed(node: Node, spark: SparkSession, positive: list[DataFrame], negative: list[DataFrame]) -> None:
    if isinstance(node, Union):
        for operand in node.operands:
            _signed(operand, spark, positive, negative)
    elif isinstance(node, Negate):
        _signed(node.input, spark, negative, positive)
    else:
        positive.append(frame(node, spark))


def _recursive(node: Bound | Recur | Hoisted, spark: SparkSession) -> DataFrame:
    if isinstance(node, Bound):
        return _bound(node, spark)
    fixpoint, held = _HELD[-1]
    if isinstance(node, Hoisted):
        return frame(fixpoint.operands[node.operand], spark).select(*node.columns)
    return held[node.binding].select(*(F.col(f"`{name}`").alias(id) for id, name in node.outputs))


def _bound(node: Bound, spark: SparkSession) -> DataFrame:
    """Bindings begin empty; each iteration evaluates them in order, until nothing changes."""
    fixpoint = node.input
    assert isinstance(fixpoint, Fixpoint)
    held = {b.name: no_rows(spark, struct(b.schema)) for b in fixpoint.bindings}
    _HELD.append((fixpoint, held))
    changed = True
    while changed:
        changed = False
        for binding in fixpoint.bindings:
            rows = frame(binding.plan, spark).toDF(*binding.schema.names).localCheckpoint()
            before, held[binding.name] = held[binding.name], rows
            changed |= bool(rows.exceptAll(before).limit(1).collect() or before.exceptAll(rows).limit(1).collect())
    _HELD.pop()
    return held[node.binding].select(*(F.col(f"`{name}`").alias(id) for id, name in node.outputs))


def _fallback(node: Fallback, spark: SparkSession) -> DataFrame:
    views = []
    for operand, names in zip(node.operands, node.names, strict=True):
        views.append(_view(frame(operand, spark).toDF(*names)))
    return spark.sql(node.sql.format(*views)).toDF(*node.ids)


def _view(rows: DataFrame) -> str:
    name = f"interpreted_{next(_NUMBERS)}"
    rows.createOrReplaceTempView(name)
    return name
