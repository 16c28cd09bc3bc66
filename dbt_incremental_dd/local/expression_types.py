"""Types of expressions and aggregates that the driver evaluates: those that it gives over no rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, DOUBLE, FLOATS, INTEGERS, LONG, Decimal, Type
from dbt_incremental_dd.local.aggregates import aggregated
from dbt_incremental_dd.local.aggregates.sums import sum_type
from dbt_incremental_dd.local.coercion import MOST_DIGITS, common_type
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.generators import generated
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact
from dbt_incremental_dd.local.windows import with_windows
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Aggregate
from dbt_incremental_dd.logical.now import SOME_TIME
from dbt_incremental_dd.trace.arrow import arrow_type


class ExpressionTypes:
    """Over a relation of that schema. Everything is None where only Spark knows."""

    def __init__(self, over: Schema, constants: Constants) -> None:
        columns = tuple(column for column in over if arrow_type(column.type) is not None)
        empty = pa.table([pa.array([], arrow_type(column.type)) for column in columns], [c.name for c in columns])
        self._types = {column.name: column.type for column in over}
        self._rows = Table(empty, Schema(columns))
        self._constants = constants

    def expression(self, expr: Expr) -> Type | None:
        """An expression's type."""
        if expr.as_column in self._types:
            return self._types[expr.as_column]
        try:
            if not expr.refs:
                return self._constants.value_of(expr.sql).type
            return evaluate(self._rows, expr, self._constants).type
        except NotExact:
            return None

    def aggregate(self, aggregate: Aggregate) -> Type | None:
        """An aggregate's type."""
        if aggregate.function == "count" and aggregate.plain:
            is_complete = bool(aggregate.args) or "*" in aggregate.sql.sql
            return LONG if is_complete else None
        rule = _AGGREGATES.get(aggregate.function)
        if rule is None or not aggregate.plain or len(aggregate.args) != 1:
            return self._computed(aggregate.sql)
        argument = self.expression(aggregate.args[0])
        return rule(argument) if argument else None

    def _computed(self, call: Expr) -> Type | None:
        """The type of an aggregate of no rows."""
        try:
            return aggregated(self._rows, (), [("c", call.at(SOME_TIME))], self._constants).type("c")
        except NotExact:
            return None

    def windows(self, functions: Sequence[tuple[str, Expr]]) -> Schema | None:
        """The columns that window functions are."""
        try:
            found = with_windows(self._rows, functions, self._constants).schema
        except NotExact:
            return None
        return found.select(tuple(id for id, _ in functions))

    def generator(self, call: Expr, outputs: Sequence[str]) -> Schema | None:
        """The columns that a generator makes, under these names."""
        try:
            found = generated(self._rows, call, outputs, self._constants, outer=False).schema
        except NotExact:
            return None
        return found.select(tuple(outputs))


def union(operands: Sequence[Schema], names: Sequence[str]) -> Schema | None:
    """The columns of a UNION ALL, under these names; None where only Spark knows."""
    try:
        types = [common_type([column.type for column in columns]) for columns in zip(*operands, strict=True)]
    except NotExact:
        return None
    return Schema(tuple(Column(name, type) for name, type in zip(names, types, strict=True)))


def _sum(type: Type) -> Type | None:
    return sum_type(type) if isinstance(type, Decimal) or type in INTEGERS else _double(type)


def _average(type: Type) -> Type | None:
    if isinstance(type, Decimal):
        return Decimal(min(type.precision + 4, MOST_DIGITS), min(type.scale + 4, MOST_DIGITS))
    return DOUBLE if type in INTEGERS else _double(type)


def _double(type: Type) -> Type | None:
    return DOUBLE if type in FLOATS else None


def _truth(type: Type) -> Type | None:
    return BOOLEAN if type == BOOLEAN else None


def _count(type: Type) -> Type | None:
    return LONG if type == BOOLEAN else None


def _itself(type: Type) -> Type | None:
    return type


_AGGREGATES: dict[str, Callable[[Type], Type | None]] = {
    "count_if": _count,
    "sum": _sum,
    "avg": _average,
    "mean": _average,
    "min": _itself,
    "max": _itself,
    **dict.fromkeys(("bool_and", "every", "bool_or", "some", "any"), _truth),
}

NAMES = frozenset(("count", *_AGGREGATES))
"""Of the aggregates, in lower case."""
