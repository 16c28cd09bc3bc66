"""Types of a logical plan's columns, each operator's from those of its inputs: as the driver knows them, or found by
having Spark analyse the one operator over empty relations. Runs no job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce as fold
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import functions as F

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, INTEGER, Type
from dbt_incremental_dd.local.expression_types import ExpressionTypes, union
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical import nodes as logical
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.graph import ByIdentity
from dbt_incremental_dd.logical.node import Id, Node
from dbt_incremental_dd.logical.now import SOME_TIME, bind_now
from dbt_incremental_dd.logical.recursion import Bound, Fixpoint, Hoisted, Recur
from dbt_incremental_dd.relation.constants import DriverConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.trace.arrow import is_flat
from dbt_incremental_dd.trace.spark_reader import schema_of, struct, unstorable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_Typed = tuple[Id, Expr]


class PlanTypes:
    """Implements ``differential.state.Types``. ``inputs``: the visible schema of each collection.

    All methods raise UnsupportedSQL for columns that cannot be stored.
    """

    def __init__(self, session: LazySession, inputs: Mapping[str, Schema]) -> None:
        self._session = session
        self._inputs = inputs
        self._constants = DriverConstants(session)
        self._found = ByIdentity[Schema]()
        self._empties: dict[Schema, DataFrame] = {}

    @property
    def _spark(self) -> SparkSession:
        return self._session.spark

    def of(self, node: Node) -> Schema:
        """The node's columns with their types."""
        return self._found.of(node, self._columns)

    def of_expression(self, expr: Expr, over: Schema) -> Type:
        """The type of an expression over a relation of that schema."""
        return self._each([("c", expr)], over).columns[0].type

    def of_sql(self, template: str, relations: Sequence[Schema]) -> Schema:
        """The columns of a query whose relations are written ``{0}``, ``{1}``, ..."""
        return schema_of(self._query(template, list(map(self._empty, relations))).schema)

    def _query(self, template: str, frames: list[DataFrame]) -> DataFrame:
        names = [f"dd_type_{uuid4().hex}" for _ in frames]
        for name, frame in zip(names, frames, strict=True):
            frame.createOrReplaceTempView(name)
        try:
            found = self._spark.sql(bind_now(template, SOME_TIME).format(*names))
            found.schema  # noqa: B018 - analysed while the views are there
            return found
        finally:
            for name in names:
                self._spark.catalog.dropTempView(name)

    def _empty(self, schema: Schema) -> DataFrame:
        if schema not in self._empties:
            self._empties[schema] = self._spark.createDataFrame([], struct(schema))
        return self._empties[schema]

    def _columns(self, node: Node) -> Schema:
        match node:
            case logical.Get():
                return _renamed(self._inputs[node.collection], node.outputs)
            case logical.Constant() if node.is_one_row:
                return Schema((Column(node.ids[0], INTEGER),))
            case logical.Constant():
                return _columns_of(self._spark.sql(node.sql).toDF(*node.ids))
            case logical.Map():
                return self._each(node.outputs, self.of(node.input))
            case logical.FlatMap():
                return self._generated(node)
            case logical.Join():
                return self._joined(node.operands, node.on)
            case logical.OuterJoin():
                return self._joined((node.left, node.right), node.on)
            case logical.SemiJoin():
                self._joined((node.left, node.right), node.on)
                return self.of(node.left)
            case logical.Reduce():
                return self._reduce(node)
            case logical.Window():
                return self._window(node)
            case logical.Union():
                return self._union(node)
            case Recur() | Hoisted() | Bound():
                return self._recursive(node)
            case logical.Fallback():
                operands = zip(node.operands, node.names, strict=True)
                frames = [self._empty(self.of(o)).toDF(*names) for o, names in operands]
                return _columns_of(self._query(node.sql, frames).toDF(*node.ids))
        return self.of(node.inputs[0])

    def _generated(self, node: logical.FlatMap) -> Schema:
        over, call = self.of(node.input), node.generator.at(SOME_TIME)
        known = ExpressionTypes(over, self._constants).generator(call, node.outputs)
        aliases = node.outputs[0] if len(node.outputs) == 1 else f"({', '.join(node.outputs)})"
        return over + (known or _columns_of(self._empty(over).selectExpr(f"{call.sql} AS {aliases}")))

    def _recursive(self, node: Recur | Hoisted | Bound) -> Schema:
        if isinstance(node, Hoisted):
            return self.of(node.node)
        if isinstance(node, Recur):
            return _renamed(node.schema, node.outputs)
        assert isinstance(node.input, Fixpoint)
        return _renamed(node.input.binding(node.binding).schema, node.outputs)

    def _each(self, outputs: Sequence[_Typed], over: Schema) -> Schema:
        """Expressions under their names. Spark is asked for all that the driver does not know, at once."""
        known = ExpressionTypes(over, self._constants)
        types = {id: type for id, e in outputs if (type := known.expression(e.at(SOME_TIME)))}
        asked = [f"{e.at(SOME_TIME).sql} AS {id}" for id, e in outputs if id not in types]
        if asked:
            types |= {c.name: c.type for c in _columns_of(self._empty(over).selectExpr(*asked))}
        return Schema(tuple(Column(id, types[id]) for id, _ in outputs))

    def _joined(self, operands: Sequence[Node], on: Sequence[Expr]) -> Schema:
        """All columns, if rows of the join can be found by the keys that its condition computes."""
        schema = Schema(tuple(column for operand in operands for column in self.of(operand)))
        conjuncts = [conjunct for predicate in on for conjunct in predicate.conjuncts()]
        equalities = [sides for conjunct in conjuncts if (sides := conjunct.equality_sides())]
        keys = [side for sides in equalities for side in sides[:2] if side.as_column is None]
        self._each([(f"k{i}", key) for i, key in enumerate(keys)], schema)
        return schema

    def _reduce(self, node: logical.Reduce) -> Schema:
        over = self.of(node.input)
        known = ExpressionTypes(over, self._constants)
        types = {a.id: type for a in node.aggregates if (type := known.aggregate(a))}
        asked = [F.expr(f"{a.sql.at(SOME_TIME).sql} AS {a.id}") for a in node.aggregates if a.id not in types]
        if asked:
            types |= {c.name: c.type for c in _columns_of(self._empty(over).groupBy(*node.keys).agg(*asked))}
        made = (Column(aggregate.id, types[aggregate.id]) for aggregate in node.aggregates)
        return Schema((*over.select(node.keys), *made))

    def _window(self, node: logical.Window) -> Schema:
        over = self.of(node.input)
        functions = [(id, e.at(SOME_TIME)) for id, e in node.functions]
        known = ExpressionTypes(over, self._constants).windows(functions)
        made = known or _columns_of(self._empty(over).selectExpr(*(f"{e.sql} AS {id}" for id, e in functions)))
        return over + made

    def _union(self, node: logical.Union) -> Schema:
        operands = list(map(self.of, node.operands))
        known = union(operands, node.ids)
        return known or _columns_of(fold(lambda a, b: a.union(b), map(self._empty, operands)).toDF(*node.ids))


class DriverTypes(PlanTypes):
    """The same without Spark. All methods raise NotExact for what only Spark knows.

    A plan that has types here is one that Spark accepts: conditions and orders have types as well, and only columns of
    types without parts are compared.
    """

    def known(self, node: Node) -> Schema | None:
        """The same as ``of``; None for what only Spark knows."""
        try:
            return self.of(node)
        except (NotExact, UnsupportedSQL):
            return None

    @property
    def _spark(self) -> SparkSession:
        raise NotExact("only Spark knows a type")

    def _columns(self, node: Node) -> Schema:
        if isinstance(node, logical.Constant) and not node.is_one_row:
            rows = self._session.literal_rows(node.sql)
            if rows is None:
                raise NotExact("a query over nothing")
            return Schema(tuple(Column(id, c.type) for id, c in zip(node.ids, rows.schema, strict=True)))
        for name, expr, over in _used(node, self.of):
            dtype = ExpressionTypes(over, self._constants).expression(expr.at(SOME_TIME))
            if dtype is None or (name == _CONDITION and dtype != BOOLEAN):
                raise NotExact(f"only Spark knows the type of {expr.sql}")
        found = super()._columns(node)
        compared = (
            found.select(node.keys) if isinstance(node, logical.Reduce | logical.Window | logical.TopK) else found
        )
        if not isinstance(node, _PASSING) and not is_flat(compared):
            raise NotExact("a column that only Spark compares")
        return found


_CONDITION, _OPERAND = "condition", "operand"
_PASSING = (
    *(logical.Get, logical.Map, logical.Filter, logical.FlatMap),
    *(logical.Join, logical.OuterJoin, logical.SemiJoin),
)
"""Operators that compare no column by itself."""


def _used(node: Node, of: Callable[[Node], Schema]) -> Iterator[tuple[str, Expr, Schema]]:
    """The expressions of an operator that are none of its columns, each with what it is over."""
    match node:
        case logical.Filter():
            yield _CONDITION, node.predicate, of(node.input)
        case logical.Join():
            over = Schema(tuple(column for operand in node.operands for column in of(operand)))
            yield from ((_CONDITION, condition, over) for condition in node.on)
        case logical.OuterJoin() | logical.SemiJoin():
            over = of(node.left) + of(node.right)
            yield from ((_CONDITION, condition, over) for condition in node.on)
        case logical.TopK():
            yield from ((_OPERAND, order.expr, of(node.input)) for order in node.order)
        case logical.Reduce():
            for aggregate in node.aggregates:
                yield from ((_OPERAND, argument, of(node.input)) for argument in aggregate.args)
                if aggregate.filter is not None:
                    yield _CONDITION, aggregate.filter, of(node.input)
        case logical.Map() | logical.FlatMap() | logical.Window():
            return  # its columns' types are those of its expressions
        case _ if node.expressions:
            over = Schema(tuple(column for child in node.inputs for column in of(child)))
            yield from ((_OPERAND, expr, over) for expr in node.expressions)


def _columns_of(frame: DataFrame) -> Schema:
    """A DataFrame's columns. Raises UnsupportedSQL for some that cannot be stored."""
    _refuse_inside(frame.schema)
    return schema_of(frame.schema)


def _refuse_inside(schema: StructType) -> None:
    for kind, _ in unstorable(schema).values():
        raise UnsupportedSQL(f"{kind} is compared or kept inside the query")


def _renamed(schema: Schema, outputs: Sequence[tuple[Id, str]]) -> Schema:
    """Columns under the plan's ids."""
    columns = {column.name: column for column in schema}
    return Schema(tuple(Column(id, columns[name].type) for id, name in outputs))
