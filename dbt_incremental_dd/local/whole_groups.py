"""Cuts sorted rows into tables between their groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.trace.arrow import same_values


def whole_groups(tables: Iterable[pa.Table], by: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of tables that are sorted by some columns of plain types, in tables none of which shares a group with
    another one. Without columns each row is one."""
    held: list[pa.Table] = []
    for table in tables:
        if not by:
            yield table
            continue
        rows = pa.concat_tables([*held, table])
        last = _last_group(rows, by)
        if last:
            yield rows.slice(0, last)
        held = [rows.slice(last)]
    yield from (rows for rows in held if rows.num_rows)


def _last_group(rows: pa.Table, by: Sequence[str]) -> int:
    """Where the last row's group begins."""
    if not rows.num_rows:
        return 0
    ends = (pa.repeat(rows[name][-1], rows.num_rows) for name in by)
    same = reduce(pc.and_, (same_values(rows[name], end) for name, end in zip(by, ends, strict=True)))
    return int(rows.num_rows - np.count_nonzero(same.to_numpy()))
