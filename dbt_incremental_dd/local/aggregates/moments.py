"""Variances and standard deviations, by the steps that Spark takes: each row moves the mean and the second moment.

(Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import pyarrow as pa

from dbt_incremental_dd.core.types import DOUBLE
from dbt_incremental_dd.local.aggregates.groups import Aggregate, Aggregates, Groups, lists, made
from dbt_incremental_dd.local.aggregates.sums import doubles
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import column

Finish = Callable[[float, float], float | None]
"""Of the number of values and their second moment."""


def _second_moment(values: Iterable[float]) -> tuple[float, float]:
    """The number of values, and the sum of the squares of their distances from the mean."""
    count = mean = moment = 0.0
    for value in values:
        count += 1.0
        distance = value - mean
        step = distance / count
        mean += step
        moment += distance * (distance - step)
    if math.isinf(mean * (mean / count)):  # if Spark merges it with what other partitions have found, it is no number
        raise NotExact("a mean whose square is too large")
    return count, moment


def _moments(finish: Finish) -> Aggregate:
    def moments(groups: Groups, constants: Constants, value: Value) -> Value:
        found: list[float | None] = [None] * groups.count
        for number, values in lists(groups, column(pa.array(doubles(value)), DOUBLE)):
            found[number] = finish(*_second_moment(values))
        return made(groups, pa.array(found, pa.float64()), DOUBLE)

    return Aggregate(moments)


def _variance(count: float, moment: float, *, of_sample: bool) -> float | None:
    """A sample of one value has none."""
    if of_sample:
        return None if count == 1.0 else moment / (count - 1.0)
    return moment / count


def _deviation(count: float, moment: float, *, of_sample: bool) -> float | None:
    found = _variance(count, moment, of_sample=of_sample)
    if found is None:
        return None
    return math.nan if math.isnan(found) or found < 0 else math.sqrt(found)


AGGREGATES: Aggregates = {
    **dict.fromkeys(("variance", "var_samp"), _moments(lambda n, m: _variance(n, m, of_sample=True))),
    "var_pop": _moments(lambda n, m: _variance(n, m, of_sample=False)),
    **dict.fromkeys(("stddev", "std", "stddev_samp"), _moments(lambda n, m: _deviation(n, m, of_sample=True))),
    "stddev_pop": _moments(lambda n, m: _deviation(n, m, of_sample=False)),
}
