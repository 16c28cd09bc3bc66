"""Doubles as Java writes them (``Double.toString``): Spark rounds, casts and prints what it reads there.

Below 2^53 Java writes the shortest decimal that means the number, as Python does; releases before Java 19 write more
digits of some greater ones, and of powers of two below 2^-23 (JDK-4511638). Of numbers near to zero, which have few
digits, it writes two at least.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal

_MOST, _LEAST = 2.0**53, sys.float_info.min
_SMALL_POWER = 2.0**-23
_PLAIN = (1e-3, 1e7)
"""The least number that is written without an exponent, and the least one above it that is written with one."""


def written(number: float) -> Decimal:
    """The decimal that is written. Raises ValueError for one that depends on the release, and for no number."""
    size = abs(number)
    if not size < _MOST or 0 < size < _LEAST or (size < _SMALL_POWER and math.frexp(size)[0] == 0.5):
        raise ValueError(number)
    return Decimal(repr(number))


def text(number: float) -> str:
    """What is written. Raises ValueError for what depends on the release."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or _PLAIN[0] <= abs(number) < _PLAIN[1]:
        return repr(number)
    sign, digits, exponent = written(number).normalize().as_tuple()
    first, *others = map(str, digits)
    assert isinstance(exponent, int)
    return f"{'-' if sign else ''}{first}.{''.join(others) or '0'}E{exponent + len(others)}"
