"""Sums and averages of doubles over the frames of a window: added up one by one in the order of the rows, as Spark
does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import DOUBLE
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import Array, column

_MOST_STEPS = 20_000_000
"""Additions."""


def frame_sums(given: pa.ChunkedArray, first: Array, last: Array, *, average: bool) -> Value:
    """For each frame the sum, or the average, of the floats from ``first`` to ``last``, both places included; NULL for
    a frame without values. Of one without rows ``first`` is -1. Raises NotExact for many long frames."""
    nulls = pc.is_null(given).to_numpy()
    values = pc.fill_null(given, 0.0).to_numpy().astype(np.float64)
    sums, counts = np.zeros(len(first)), np.zeros(len(first), np.int64)
    so_far = np.concatenate(([0], np.cumsum(~nulls)))
    order = np.lexsort((last, first))
    begins = np.flatnonzero(np.diff(first[order], prepend=-2))
    steps = 0
    for begin, end in pairwise([*begins, len(order)]):
        frames = order[begin:end]
        start, stop = int(first[frames[0]]), int(last[frames[-1]]) + 1
        if start < 0:
            continue
        steps += stop - start
        if steps > _MOST_STEPS:
            raise NotExact("long frames")
        running = np.cumsum(np.concatenate(([0.0], values[start:stop])))  # 0.0 for a NULL changes no sum
        sums[frames] = running[last[frames] - start + 1]
        counts[frames] = so_far[last[frames] + 1] - so_far[start]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = sums / counts if average else sums
    return column(pa.array(found, mask=counts == 0), DOUBLE)
