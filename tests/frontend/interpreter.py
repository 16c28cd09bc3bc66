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


class Interpreter:
    """Of plans over tables that do not change: an operator's rows are made once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[int, tuple[Node, DataFrame]] = {}
        """By the operator's identity, which is its own as long as it is kept."""

    def frame(self, node: Node) -> DataFrame:
        """The rows of a plan without negative multiplicities; columns are called by their ids."""
        if _HELD:  # what is read changes with each iteration
            return self._made(node)
        if id(node) not in self._known:
            self._known[id(node)] = node, self._made(node)
        return self._known[id(node)][1]

    def _made(self, node: Node) -> DataFrame:  # noqa: C901 - one line for each operator
        match node:
            case Get():
                table = self._spark.table(node.collection)
                return table.selectExpr(*(f"`{name}` AS {id}" for id, name in node.outputs))
            case Constant():
                return self._spark.sql(node.sql).toDF(*node.ids)
            case Map():
                return self.frame(node.input).selectExpr(*(f"{e.sql} AS {id}" for id, e in node.outputs))
            case Filter():
                return self.frame(node.input).where(node.predicate.sql)
            case FlatMap():
                return self._flat_map(node)
            case Join() | OuterJoin() | SemiJoin():
                return self._join(node)
            case Reduce():
                return self._reduce(node)
            case Distinct():
                return self.frame(node.input).distinct()
            case TopK():
                return self._top_k(node)
            case Window():
                functions = (F.expr(e.sql).alias(id) for id, e in node.functions)
                return self.frame(node.input).select(*node.input.columns, *functions)
            case Union():
                return fold(lambda a, b: a.union(b), (self.frame(o) for o in node.operands)).toDF(*node.ids)
            case Threshold():
                return self._threshold(node)
            case Fallback():
                return self._fallback(node)
            case Bound() | Recur() | Hoisted():
                return self._recursive(node)
        raise AssertionError(f"{type(node).__name__} stands alone")

    def _flat_map(self, node: FlatMap) -> DataFrame:
        if node.generator.sql.lower().startswith(("window(", "session_window(")):
            return self.frame(node.input).selectExpr("*", f"{node.generator.sql} AS {node.outputs[0]}")
        view = _view(self.frame(node.input))
        outer = "OUTER " if node.outer else ""
        sql = f"SELECT * FROM {view} LATERAL VIEW {outer}{node.generator.sql} g AS {', '.join(node.outputs)}"
        return self._spark.sql(sql)

    def _join(self, node: Join | OuterJoin | SemiJoin) -> DataFrame:
        on = " AND ".join(f"({p.sql})" for p in node.on) or "true"
        if isinstance(node, Join):
            return fold(lambda a, b: a.crossJoin(b), (self.frame(o) for o in node.operands)).where(on)
        kinds = {"left": "left", "full": "full"}
        how = ("left_anti" if node.anti else "left_semi") if isinstance(node, SemiJoin) else kinds[node.kind]
        return self.frame(node.left).join(self.frame(node.right), F.expr(on), how)

    def _reduce(self, node: Reduce) -> DataFrame:
        rows = self.frame(node.input)
        aggregates = [F.expr(a.sql.sql).alias(a.id) for a in node.aggregates]
        if not aggregates:
            assert node.keys, "a Reduce of nothing at all"
            return rows.select(*node.keys).distinct()
        assert bool(node.keys) != node.global_row
        return rows.groupBy(*node.keys).agg(*aggregates)

    def _top_k(self, node: TopK) -> DataFrame:
        """Ties by all columns that have an order."""
        rows = self.frame(node.input)
        types = {field.name: field.dataType.simpleString() for field in rows.schema}
        ties = [name for name, dtype in types.items() if "map<" not in dtype and "variant" not in dtype]
        order = ", ".join([*(item.sql for item in node.order), *ties]) or "1"
        partition = f"PARTITION BY {', '.join(node.keys)} " if node.keys else ""
        numbered = rows.withColumn("dd_n", F.expr(f"row_number() OVER ({partition}ORDER BY {order})"))
        last = "true" if node.limit is None else f"dd_n <= {node.offset + node.limit}"
        return numbered.where(f"dd_n > {node.offset} AND {last}").drop("dd_n")

    def _threshold(self, node: Threshold) -> DataFrame:
        """Positive parts except all negative ones."""
        positive: list[DataFrame] = []
        negative: list[DataFrame] = []
        self._signed(node.input, positive, negative)
        added = fold(lambda a, b: a.union(b), positive)
        removed = fold(lambda a, b: a.union(b), negative, added.limit(0))
        return added.exceptAll(removed).toDF(*node.columns)

    def _signed(self, node: Node, positive: list[DataFrame], negative: list[DataFrame]) -> None:
        if isinstance(node, Union):
            for operand in node.operands:
                self._signed(operand, positive, negative)
        elif isinstance(node, Negate):
            self._signed(node.input, negative, positive)
        else:
            positive.append(self.frame(node))

    def _recursive(self, node: Bound | Recur | Hoisted) -> DataFrame:
        if isinstance(node, Bound):
            return self._bound(node)
        fixpoint, held = _HELD[-1]
        if isinstance(node, Hoisted):
            return self.frame(fixpoint.operands[node.operand]).select(*node.columns)
        return held[node.binding].select(*(F.col(f"`{name}`").alias(id) for id, name in node.outputs))

    def _bound(self, node: Bound) -> DataFrame:
        """Bindings begin empty; each iteration evaluates them in order, until nothing changes."""
        fixpoint = node.input
        assert isinstance(fixpoint, Fixpoint)
        held = {b.name: no_rows(self._spark, struct(b.schema)) for b in fixpoint.bindings}
        _HELD.append((fixpoint, held))
        changed = True
        while changed:
            changed = False
            for binding in fixpoint.bindings:
                rows = self.frame(binding.plan).toDF(*binding.schema.names).localCheckpoint()
                before, held[binding.name] = held[binding.name], rows
                changed |= bool(rows.exceptAll(before).limit(1).collect() or before.exceptAll(rows).limit(1).collect())
        _HELD.pop()
        return held[node.binding].select(*(F.col(f"`{name}`").alias(id) for id, name in node.outputs))

    def _fallback(self, node: Fallback) -> DataFrame:
        views = []
        for operand, names in zip(node.operands, node.names, strict=True):
            views.append(_view(self.frame(operand).toDF(*names)))
        return self._spark.sql(node.sql.format(*views)).toDF(*node.ids)


def _view(rows: DataFrame) -> str:
    name = f"interpreted_{next(_NUMBERS)}"
    rows.createOrReplaceTempView(name)
    return name
