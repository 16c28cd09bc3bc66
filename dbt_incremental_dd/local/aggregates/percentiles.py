"""Exact percentiles: the value at a place of the sorted ones, or between two."""

from __future__ import annotations

import math
from decimal import Decimal as Exact

import numpy as np
import pyarrow as pa

from dbt_incremental_dd.core.types import DOUBLE, FLOATS
from dbt_incremental_dd.local.aggregates.groups import Aggregate, Aggregates, Groups, in_any_order, lists, made
from dbt_incremental_dd.local.aggregates.sums import doubles
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import Array, column


def _percentile(groups: Groups, constants: Constants, value: Value, share: Value) -> Value:
    return percentile(groups, constants, value, share)


def percentile(groups: Groups, constants: Constants, value: Value, share: Value, *, descends: bool = False) -> Value:
    """``share``: a constant from 0 to 1, the part of the values that come before."""
    part = share.data.as_py() if isinstance(share.data, pa.Scalar) else None
    if not isinstance(part, int | float | Exact) or isinstance(part, bool) or not 0 <= part <= 1:
        raise NotExact("no constant percentage")
    numbers = doubles(value)
    if value.type in FLOATS and np.any((numbers == 0.0) & np.signbit(numbers)):
        raise NotExact("a negative zero")
    found: list[float | None] = [None] * groups.count
    for number, values in lists(groups, column(pa.array(numbers), DOUBLE)):
        ordered = np.sort(np.array(values))  # NaN is the last
        found[number] = _at(ordered[::-1] if descends else ordered, float(part), constants)
    return made(groups, pa.array(found, pa.float64()), DOUBLE)


def _at(ordered: Array, part: float, constants: Constants) -> float:
    place = (len(ordered) - 1) * part
    before, after = math.floor(place), math.ceil(place)
    low, high = float(ordered[before]), float(ordered[after])
    if before == after or low == high or (math.isnan(low) and math.isnan(high)):
        return low
    weighted, stepped = (after - place) * low + (place - before) * high, low + (place - before) * (high - low)
    if weighted == stepped or (math.isnan(weighted) and math.isnan(stepped)):
        return weighted
    return stepped if _takes_steps(constants) else weighted


def _takes_steps(constants: Constants) -> bool:
    """Whether this Spark goes from one value towards the other; before 4.3 it weighs both, which rounds otherwise."""
    found = constants.value_of("(SELECT median(v) FROM VALUES (-43.21D), (35.89D) AS t(v))").data.as_py()
    return bool(found != 0.5 * -43.21 + 0.5 * 35.89)


def _median(groups: Groups, constants: Constants, value: Value) -> Value:
    return percentile(groups, constants, value, Value(pa.scalar(0.5), DOUBLE))


AGGREGATES: Aggregates = {
    "median": Aggregate(_median, is_ordered=in_any_order),
    "percentile": Aggregate(_percentile, 2, 2, is_ordered=in_any_order),
}
