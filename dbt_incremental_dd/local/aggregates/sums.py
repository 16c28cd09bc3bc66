"""Counts, sums and averages. Sums of floats are added up in the order of the rows, as Spark does in one partition."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, DOUBLE, FLOATS, INTEGERS, LONG, Decimal, Type
from dbt_incremental_dd.differential.decimals import decimal_average
from dbt_incremental_dd.local.aggregates.groups import Aggregate, Aggregates, Groups, in_any_order, made, only_where
from dbt_incremental_dd.local.casts import cast
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.grouping import Measured, grouped
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import Array, flat
from dbt_incremental_dd.logical.expr import Expr

_MOST_DIGITS = 18
"""Of a decimal whose average is a function of sum and count."""
_GROUP, _VALUE = "dd_group", "dd_value"


def is_float(type: Type) -> bool:
    """Whether a sum of the type depends on the order of its values."""
    return type in FLOATS


def doubles(value: Value) -> Array:
    """Numbers that are not NULL, as doubles."""
    if value.type in FLOATS:
        return np.asarray(flat(value.data), dtype=np.float64)
    if value.type not in INTEGERS and not isinstance(value.type, Decimal):
        raise NotExact(f"a double of {value.type}")
    return np.asarray(flat(cast(value, DOUBLE, "UTC").data), dtype=np.float64)


def _count(groups: Groups, constants: Constants, *values: Value) -> Value:
    """Of the rows in which no argument is NULL."""
    if any(isinstance(value.data, pa.Scalar) and not value.data.is_valid for value in values):
        raise NotExact("a count of NULL")
    present = [pc.is_valid(value.data) for value in values if not isinstance(value.data, pa.Scalar)]
    if present:
        groups, _ = only_where(groups, (), reduce(pc.and_, present))
    return made(groups, groups.sizes, LONG, over_nothing=True)


def _sum(groups: Groups, constants: Constants, value: Value) -> Value:
    if value.type in FLOATS:
        return made(groups, _added(groups, doubles(value)), DOUBLE)
    return exact(groups, value, "sum", sum_type(value.type))


def _average(groups: Groups, constants: Constants, value: Value) -> Value:
    if not isinstance(value.type, Decimal):
        with np.errstate(invalid="ignore", divide="ignore"):
            return made(groups, _added(groups, doubles(value)) / groups.sizes, DOUBLE)
    quotients = decimal_averages(_sum(groups, constants, value).data, pa.array(groups.sizes), value.type, constants)
    return made(groups, quotients.data, quotients.type)


def decimal_averages(totals: pa.ChunkedArray, counts: pa.Array, type: Decimal, constants: Constants) -> Value:
    """The average for each sum and count of values of the type; NULL for none. Raises NotExact for many digits."""
    if type.precision > _MOST_DIGITS:
        raise NotExact(f"an average of {type}")
    schema = Schema((Column("dd_sum", sum_type(type)), Column("dd_count", LONG)))
    rows = Table(pa.table({"dd_sum": totals, "dd_count": counts}), schema)
    return evaluate(rows, Expr(decimal_average("dd_sum", "nullif(dd_count, 0L)", type)), constants)


def _added(groups: Groups, values: Array) -> Array:
    """The sums of the groups' values, one after the other from 0.0 on, in the order of the rows."""
    return np.bincount(groups.numbers, weights=values, minlength=groups.count)


def sum_type(type: Type) -> Type:
    """That of a sum of integers or decimals. Raises NotExact for other types."""
    if type in INTEGERS:
        return LONG
    if not isinstance(type, Decimal):
        raise NotExact(f"a sum of {type}")
    return Decimal(min(type.precision + 10, 38), type.scale)


def exact(groups: Groups, value: Value, function: str, type: Type) -> Value:
    """A sum or an extreme that is the same in every order; raises NotExact where a sum may overflow."""
    if isinstance(value.data, pa.Scalar):
        raise NotExact("an aggregate of a constant")
    if function == "sum" and value.type in INTEGERS:
        value = Value(value.data.cast(pa.int64()), LONG)
    rows = Table(pa.table({_GROUP: pa.array(groups.numbers)}), Schema((Column(_GROUP, LONG),)))
    found = grouped(rows, [_GROUP], [Measured(_VALUE, function, value, type)]).arrow
    places = pc.index_in(pa.array(np.arange(groups.count)), value_set=flat(found[_GROUP]))
    return made(groups, flat(found[_VALUE]).take(places), type)


def _count_if(groups: Groups, constants: Constants, value: Value) -> Value:
    if value.type != BOOLEAN or isinstance(value.data, pa.Scalar):
        raise NotExact
    groups, _ = only_where(groups, (), pc.fill_null(value.data, False))
    return made(groups, groups.sizes, LONG, over_nothing=True)


def _extreme(function: str) -> Aggregate:
    def extreme(groups: Groups, constants: Constants, value: Value) -> Value:
        return exact(groups, value, function, value.type)

    return Aggregate(extreme, is_ordered=in_any_order)


def _truth(*, of_all: bool) -> Aggregate:
    """Whether all values are true, or any; NULL over none."""

    def truth(groups: Groups, constants: Constants, value: Value) -> Value:
        if value.type != BOOLEAN or isinstance(value.data, pa.Scalar):
            raise NotExact
        wanted, _ = only_where(groups, (), pc.invert(value.data) if of_all else value.data)
        return made(groups, (wanted.sizes == 0) if of_all else (wanted.sizes > 0), BOOLEAN)

    return Aggregate(truth, is_ordered=in_any_order)


AGGREGATES: Aggregates = {
    "count": Aggregate(_count, 0, 1_000, drops_nulls=False, is_ordered=in_any_order),
    "count_if": Aggregate(_count_if, drops_nulls=False, is_ordered=in_any_order),
    "sum": Aggregate(_sum, is_ordered=is_float),
    "avg": Aggregate(_average, is_ordered=is_float),
    "mean": Aggregate(_average, is_ordered=is_float),
    "min": _extreme("min"),
    "max": _extreme("max"),
    **dict.fromkeys(("bool_and", "every"), _truth(of_all=True)),
    **dict.fromkeys(("bool_or", "some", "any"), _truth(of_all=False)),
}
