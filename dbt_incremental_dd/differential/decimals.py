"""Sums and averages of decimals from accumulators, exact to the last digit, in SQL.

Spark's decimals have 38 digits; an operation that needs more rounds.
"""

from __future__ import annotations

from collections.abc import Callable

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.types import Decimal

Add = Callable[[str, str], str]
"""Of what a row of a delta adds to a sum, and the sum's type: the name of the accumulator."""

_WIDEST_DIFF = 9
"""Decimal digits of a diff in a product with a decimal: multiplicities up to a billion."""
_WIDEST_WHOLE = 38 - _WIDEST_DIFF - 1
"""Digits of a decimal whose product with a diff is exact."""
_HALF = 19
"""Digits of either half of a wider one."""
_WIDEST_SCALE = 6
"""Digits after the point up to which Spark adds the halves without rounding."""


def sums_exactly(type: Decimal) -> bool:
    """Whether ``decimal_sum`` can sum the type."""
    return type.precision <= _WIDEST_WHOLE or type.scale <= _WIDEST_SCALE


def decimal_average(total: str, count: str, type: Decimal) -> str:
    """``total / count`` as Spark's average of values of the type gives it, which is rounded once, half up.

    Spark's ``/`` has rounded before, to a few digits more. Where that has lifted a quotient to the very middle between
    two results, the lower one is right.
    """
    scale = type.scale
    dtype = f"DECIMAL({type.precision + 4},{scale + 4})"
    half = f"CAST('0.{'0' * (scale + 4)}5' AS DECIMAL({scale + 5},{scale + 5}))"
    found = f"({total} / CAST({count} AS DECIMAL(20,0)))"
    rounded = f"CAST({found} AS {dtype})"
    middle = f"(abs({rounded}) - {half})"
    lifted = f"abs({found}) = {middle} AND abs({total}) < {middle} * CAST({count} AS DECIMAL(12,0))"
    lower = f"CAST({rounded} - 2 * {half} * CASE WHEN {total} < 0 THEN -1 ELSE 1 END AS {dtype})"
    return f"CASE WHEN {lifted} THEN {lower} ELSE {rounded} END"


def decimal_sum(value: str, type: Decimal, add: Add) -> str:
    """SQL of the sum of decimals of the type, each as often as its diff, over accumulators that ``add`` makes.

    No product of a wide one with a diff would keep all digits, so they are summed in two halves:
    ``value = high * unit + low``, ``low`` of at most 19 digits.
    """
    scale = type.scale
    if type.precision <= _WIDEST_WHOLE:
        return _weighted(f"CAST({value} AS DECIMAL({type.precision},{scale}))", scale, add)
    zeros = _HALF - scale
    unit = f"CAST('1{'0' * zeros}' AS DECIMAL({zeros + 1},0))"
    part = f"CAST('0.{'0' * (zeros - 1)}1' AS DECIMAL({zeros},{zeros}))"
    remainder = f"({value}) % {unit}"
    low = _weighted(f"CAST({remainder} AS DECIMAL({_HALF},{scale}))", scale, add)
    high = _weighted(f"CAST((({value}) - {remainder}) * {part} AS DECIMAL({_HALF},0))", 0, add)
    whole = f"CAST(CAST({high} AS DECIMAL({_HALF + 1},0)) * {unit} AS DECIMAL(38,{scale}))"
    return f"({whole} + CAST({low} AS DECIMAL(38,{scale})))"


def _weighted(value: str, scale: int, add: Add) -> str:
    weighted = f"{value} * CAST({DIFF} AS DECIMAL({_WIDEST_DIFF},0))"
    return add(weighted, f"DECIMAL(37,{scale})")
