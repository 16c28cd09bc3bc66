"""Many rows a part at a time, in several threads: what is computed on the way takes memory for one part only."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact

ROWS = 1 << 20
"""In a part; no more are computed at once."""


def is_sliced(rows: Table) -> bool:
    """Whether there are too many for one part."""
    return rows.num_rows > ROWS


def in_slices(rows: Table, compute: Callable[[Table], Table]) -> Table:
    """``compute`` of all rows, in their order, where it computes each one by itself. Raises what it raises."""
    if not is_sliced(rows):
        return compute(rows)
    parts = [rows.replaced(rows.arrow.slice(at, ROWS)) for at in range(0, rows.num_rows, ROWS)]
    with ThreadPoolExecutor(min(len(parts), os.cpu_count() or 1)) as pool:
        made = list(pool.map(compute, parts))
    if any(part.schema != made[0].schema for part in made):
        raise NotExact("types that depend on values")
    return made[0].replaced(pa.concat_tables([part.arrow for part in made]))
