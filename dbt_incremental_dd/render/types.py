"""Types of a logical plan's columns, found by having Spark analyse the plan over empty relations. Runs no job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce as fold
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.logical import nodes as logical
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Id, Node
from dbt_incremental_dd.logical.now import bind_now
from dbt_incremental_dd.logical.recursion import Bound, Fixpoint, Hoisted, Recur
from dbt_incremental_dd.trace.spark_reader import quoted, schema_of, struct, unstorable

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class SparkTypes:
    """Implements ``differential.state.Types``. ``inputs``: the visible schema of each collection.

    All methods raise UnsupportedSQL for columns that cannot be stored.
    """

    def __init__(self, spark: SparkSession, inputs: Mapping[str, Schema]) -> None:
        self._spark = spark
        self._inputs = inputs
        self._frames: dict[int, tuple[Node, DataFrame]] = {}

    def of(self, node: Node) -> Schema:
        """The node's columns with their types."""
        return schema_of(self._frame(node).schema)

    def of_query(self, select: str, over: Schema) -> Schema:
        """The columns of a select list over a relation of that schema."""
        return schema_of(self._spark.createDataFrame([], struct(over)).selectExpr(bind_now(select, 0)).schema)

    def of_sql(self, template: str, relations: Sequence[Schema]) -> Schema:
        """The columns of a query whose relations are written ``{0}``, ``{1}``, ..."""
        return schema_of(self._query(template, [self._spark.createDataFrame([], struct(s)) for s in relations]).schema)

    def _query(self, template: str, frames: list[DataFrame]) -> DataFrame:
        names = [f"dd_type_{uuid4().hex}" for _ in frames]
        for name, frame in zip(names, frames, strict=True):
            frame.createOrReplaceTempView(name)
        try:
            found = self._spark.sql(bind_now(template, 0).format(*names))
            found.schema  # noqa: B018 - analysed while the views are there
            return found
        finally:
            for name in names:
                self._spark.catalog.dropTempView(name)

    def _frame(self, node: Node) -> DataFrame:
        if id(node) not in self._frames:
            made = self._analyse(node)
            _refuse_inside(made.schema)
            # An empty relation of the same schema keeps each further analysis as small as one operator.
            # The node is kept with it: its identity must not become another one's.
            self._frames[id(node)] = (node, self._spark.createDataFrame([], made.schema))
        return self._frames[id(node)][1]

    def _analyse(self, node: Node) -> DataFrame:
        match node:
            case logical.Get():
                frame = self._spark.createDataFrame([], struct(self._inputs[node.collection]))
                return frame.select(*_named(node.outputs))
            case logical.Constant():
                return self._spark.sql(node.sql).toDF(*node.ids)
            case logical.Map():
                return self._frame(node.input).select(*(F.expr(e.at(0).sql).alias(id) for id, e in node.outputs))
            case logical.FlatMap():
                aliases = node.outputs[0] if len(node.outputs) == 1 else f"({', '.join(node.outputs)})"
                return self._frame(node.input).selectExpr("*", f"{node.generator.at(0).sql} AS {aliases}")
            case logical.Join():
                frame = fold(lambda a, b: a.crossJoin(b), map(self._frame, node.operands))
                return _with_keys(frame, node.on)
            case logical.OuterJoin():
                frame = self._frame(node.left).join(self._frame(node.right), F.lit(True), "left")
                return _with_keys(frame, node.on)
            case logical.SemiJoin():
                _with_keys(self._frame(node.left).crossJoin(self._frame(node.right)), node.on)
                return self._frame(node.left)
            case logical.Reduce():
                return self._reduce(node)
            case logical.Window():
                functions = (F.expr(e.at(0).sql).alias(id) for id, e in node.functions)
                return self._frame(node.input).select("*", *functions)
            case logical.Union():
                return fold(lambda a, b: a.union(b), map(self._frame, node.operands)).toDF(*node.ids)
            case Recur() | Hoisted() | Bound():
                return self._recursive(node)
            case logical.Fallback():
                frames = [self._frame(o).toDF(*names) for o, names in zip(node.operands, node.names, strict=True)]
                return self._query(node.sql, frames).toDF(*node.ids)
        return self._frame(node.inputs[0])

    def _recursive(self, node: Recur | Hoisted | Bound) -> DataFrame:
        if isinstance(node, Hoisted):
            return self._frame(node.node)
        if isinstance(node, Recur):
            return self._spark.createDataFrame([], struct(node.schema)).select(*_named(node.outputs))
        assert isinstance(node.input, Fixpoint)
        schema = node.input.binding(node.binding).schema
        return self._spark.createDataFrame([], struct(schema)).select(*_named(node.outputs))

    def _reduce(self, node: logical.Reduce) -> DataFrame:
        aggregates = [F.expr(a.sql.at(0).sql).alias(a.id) for a in node.aggregates]
        frame = self._frame(node.input)
        return frame.groupBy(*node.keys).agg(*aggregates) if aggregates else frame.select(*node.keys).distinct()


def _with_keys(frame: DataFrame, on: Sequence[Expr]) -> DataFrame:
    """The frame, if rows of the join can be found by the keys that its condition computes."""
    conjuncts = [conjunct for predicate in on for conjunct in predicate.conjuncts()]
    equalities = [sides for conjunct in conjuncts if (sides := conjunct.equality_sides())]
    keys = [side.at(0).sql for sides in equalities for side in sides[:2] if side.as_column is None]
    if keys:
        _refuse_inside(frame.selectExpr(*(f"({key}) AS k{i}" for i, key in enumerate(keys))).schema)
    return frame


def _refuse_inside(schema: StructType) -> None:
    for kind, _ in unstorable(schema).values():
        raise UnsupportedSQL(f"{kind} is compared or kept inside the query")


def _named(outputs: Sequence[tuple[Id, str]]) -> list[SparkColumn]:
    """Columns under the plan's ids."""
    return [quoted(name).alias(id) for id, name in outputs]
