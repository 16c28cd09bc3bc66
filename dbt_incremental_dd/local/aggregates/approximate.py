"""Approximate aggregates of groups for which Spark's answer is certain: few different values, or few rows.

Sources: Heule, Nunkesser, Hall, "HyperLogLog in Practice" (EDBT 2013), as Spark's ``HyperLogLogPlusPlusHelper`` has it;
Greenwald, Khanna, "Space-efficient Online Computation of Quantile Summaries" (SIGMOD 2001), which keeps every value
until there are too many.
"""

from __future__ import annotations

import math
from decimal import Decimal as Exact
from typing import Any

import numpy as np
import pyarrow as pa

from dbt_incremental_dd.core.types import DATE, DOUBLE, FLOATS, INTEGERS, LONG, Decimal
from dbt_incremental_dd.local.aggregates.groups import Aggregate, Aggregates, Groups, in_any_order, made
from dbt_incremental_dd.local.functions.hash_chain import hashes
from dbt_incremental_dd.local.functions.xxhash import of_bytes
from dbt_incremental_dd.local.nested import numbers
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import Array, constant_int, flat

_BITS = 9
"""Of a hash, which say its register: by Spark's default of a relative deviation of 0.05."""
_REGISTERS = 1 << _BITS
_MOST_COUNTED = 400.0
"""Up to which Spark takes the estimate from the registers that are empty, by linear counting."""
_ACCURACY = 10_000
_EXACT_DIGITS = 15
"""Of a decimal that is the same after it has been a double."""


def _count_distinct(groups: Groups, constants: Constants, value: Value) -> Value:
    if value.type in FLOATS:
        raise NotExact("hashes of floats")
    registers = np.array([hash >> (64 - _BITS) for hash in hashes(of_bytes, value)], np.int64)
    taken = np.zeros((groups.count, _REGISTERS), bool)
    taken[groups.numbers, registers] = True
    estimates = [_estimate(int(count)) for count in _REGISTERS - taken.sum(axis=1)]
    return made(groups, pa.array(estimates, pa.int64()), LONG, over_nothing=True)


def _estimate(empty: int) -> int:
    """Raises NotExact for one that is not counted linearly, or that is rounded by its last digits."""
    found = _REGISTERS * math.log(_REGISTERS / empty) if empty else math.inf
    if found > _MOST_COUNTED or abs(found % 1 - 0.5) < 1e-9:
        raise NotExact("many different values")
    return math.floor(found + 0.5)


def _percentile(
    groups: Groups, constants: Constants, value: Value, share: Value, accuracy: Value | None = None
) -> Value:
    """The value at a place of the sorted ones."""
    most = _ACCURACY if accuracy is None else constant_int(accuracy)
    part = share.data.as_py() if isinstance(share.data, pa.Scalar) else None
    if not isinstance(part, int | float | Exact) or isinstance(part, bool) or not 0 <= part <= 1 or most < 1:
        raise NotExact("no constant percentage")
    is_plain = value.type in (*INTEGERS, DOUBLE, DATE) or (
        isinstance(value.type, Decimal) and value.type.precision <= _EXACT_DIGITS
    )
    if not is_plain or isinstance(value.data, pa.Scalar):
        raise NotExact(f"a percentile of {value.type}")
    if value.type == LONG and np.any(np.abs(flat(value.data).to_numpy()) >= 1 << 53):
        raise NotExact("integers that are no doubles")
    sizes = groups.sizes
    if np.any(2 * sizes >= most):
        raise NotExact("many rows, of which some are left out")
    order = np.lexsort((numbers(value.data)[0].to_numpy(), groups.numbers))
    starts = np.cumsum(sizes) - sizes
    at = np.array([_place(int(size), float(part), 1 / most) for size in sizes], np.int64)
    return _taken(groups, value, order, starts + at)


def _place(count: int, part: float, error: float) -> int:
    if part <= error:
        return 0
    return max(count - 1, 0) if part >= 1 - error else max(math.ceil(part * count) - 1, 0)


def _taken(groups: Groups, value: Value, order: Array, at: Array) -> Value:
    if not len(order):
        return made(groups, pa.nulls(groups.count, value.data.type), value.type)
    found: Any = flat(value.data).take(pa.array(order[np.minimum(at, len(order) - 1)]))
    return made(groups, found, value.type)


_PERCENTILE = Aggregate(_percentile, 2, 3, is_ordered=in_any_order)
AGGREGATES: Aggregates = {
    "approx_count_distinct": Aggregate(_count_distinct, is_ordered=in_any_order),
    "approx_percentile": _PERCENTILE,
    "percentile_approx": _PERCENTILE,
}
