"""Quotients of many decimals at once, by long division in NumPy's 64-bit integers.

The whole part of x / y comes first, and then a few more digits at a time: the remainder times a power of ten, divided
by y. The quotient is a number of four 32-bit limbs, which are the bytes of Arrow's decimals (Knuth, The Art of Computer
Programming 2, 4.3.1).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import Decimal
from dbt_incremental_dd.local.coercion import MOST_DIGITS
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.local.vectors import Array
from dbt_incremental_dd.trace.arrow import arrow_type

_MOST = 1 << 62
"""All numbers are less than this, so that twice as much fits into 64 bits."""
_LIMB = np.uint64(0xFFFFFFFF)
_LIMB_BITS = np.uint64(32)
_MOST_DIGITS = 9
"""At a time: a limb has room for so many."""


def quotients(x: Array, y: Array, digits: int, type: Decimal) -> pa.Array:
    """``x * 10**digits / y``, rounded half up to an integer, as units of ``type``; NULL where ``y`` is 0. Both are
    64-bit integers. Raises NotExact for numbers that are too large for parts of 64 bits, or for the type."""
    if not len(x):
        return pa.array([], arrow_type(type))
    is_negative = (x < 0) != (y < 0)
    if min(x.min(), y.min()) <= -_MOST or max(x.max(), y.max()) >= _MOST:
        raise NotExact
    divided, divisor = np.abs(x).astype(np.uint64), np.abs(y).astype(np.uint64)
    largest = int(divisor.max())
    at_once = next((some for some in range(_MOST_DIGITS, 0, -1) if largest * 10**some < _MOST), 0)
    if digits and not at_once:
        raise NotExact
    is_defined = divisor != 0
    divisor = np.where(is_defined, divisor, np.uint64(1))
    part, rest = np.divmod(divided, divisor)
    limbs = [part & _LIMB, part >> _LIMB_BITS, np.zeros_like(part), np.zeros_like(part)]
    while digits:
        some = min(digits, at_once)
        part, rest = np.divmod(rest * np.uint64(10**some), divisor)
        limbs = _appended(limbs, 10**some, part)
        digits -= some
    limbs = _appended(limbs, 1, (rest * np.uint64(2) >= divisor).astype(np.uint64))
    return _signed(limbs, is_negative, is_defined, type)


def _appended(limbs: list[Array], factor: int, part: Array) -> list[Array]:
    """The limbs' number times the factor, plus the part, which is at most the factor. Raises NotExact where the four
    limbs do not hold it."""
    carry, found = part, []
    for limb in limbs:
        product = limb * np.uint64(factor) + carry
        found.append(product & _LIMB)
        carry = product >> _LIMB_BITS
    if carry.any():
        raise NotExact
    return found


def _signed(limbs: list[Array], is_negative: Array, is_defined: Array, type: Decimal) -> pa.Array:
    """The limbs' numbers with their signs. Raises NotExact where the type has too few digits."""
    if (limbs[-1] >> np.uint64(31)).any():
        raise NotExact
    data = np.stack([limb.astype(np.uint32) for limb in limbs], axis=1)
    valid = pa.array(is_defined).buffers()[1]
    sizes = pa.Array.from_buffers(pa.decimal128(MOST_DIGITS, type.scale), len(data), [valid, pa.py_buffer(data)])
    if (pc.max(sizes).as_py() or 0) >= 10 ** (type.precision - type.scale):
        raise NotExact
    return pc.if_else(pa.array(is_negative), pc.negate(sizes), sizes).cast(arrow_type(type))
