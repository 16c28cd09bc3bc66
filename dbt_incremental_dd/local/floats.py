"""Floats as Spark groups and orders them: NaN equals itself and is the greatest, and there is one zero.

Arrow compares their bits where it groups, and leaves NaN out of minima and maxima. (Spark's documentation, "NaN
Semantics"; IEEE 754 for the order of bits.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MAGNITUDE = np.int64(2**63 - 1)


def canonical(values: Any) -> Any:
    """The values, an array or a chunked one, with the same bits where they are equal; as they are, if they are no
    floats."""
    if not pa.types.is_floating(values.type):
        return values
    return _one_nan(pc.add(values, pa.scalar(0.0, values.type)))


def _one_nan(values: Any) -> Any:
    return pc.if_else(pc.is_nan(values), pa.scalar(math.nan, values.type), values)


def ranks(values: Any, *, one_zero: bool = True) -> Any:
    """BIGINTs in the order of the floats, equal where they are equal; NULL stays NULL. Values of another type stay as
    they are.

    Without ``one_zero``, -0.0 is just below 0.0, so that it can be told from its rank.
    """
    if not pa.types.is_floating(values.type):
        return values
    if isinstance(values, pa.Scalar):
        return ranks(pa.array([values.as_py()], values.type), one_zero=one_zero)[0]
    array = (canonical(values) if one_zero else _one_nan(values)).cast(pa.float64())
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    bits = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False).view(np.int64)
    # The greater the magnitude of a negative number, the less it is.
    ordered = pa.array(np.where(bits < 0, bits ^ _MAGNITUDE, bits))
    return pc.if_else(pc.is_valid(array), ordered, pa.scalar(None, pa.int64()))


def of_ranks(found: Any, type: pa.DataType) -> Any:
    """The floats of a type that have these ranks."""
    array = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    ranked = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    values = pa.array(np.where(ranked < 0, ranked ^ _MAGNITUDE, ranked).view(np.float64), from_pandas=False)
    return pc.if_else(pc.is_valid(array), values, pa.scalar(None, pa.float64())).cast(type)


def extreme(columns: Sequence[Any], *, is_greatest: bool) -> Any:
    """In each row the greatest value of the columns or constants, or the least one; of equal ones the first.

    NULLs do not count.
    """
    found, rank = columns[0], ranks(columns[0])
    for other in columns[1:]:
        other_rank = ranks(other)
        is_beyond = pc.greater(other_rank, rank) if is_greatest else pc.less(other_rank, rank)
        taken = pc.and_(pc.is_valid(other_rank), pc.or_(pc.is_null(rank), pc.fill_null(is_beyond, False)))
        found, rank = pc.if_else(taken, other, found), pc.if_else(taken, other_rank, rank)
    return found
