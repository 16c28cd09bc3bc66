"""Tables in parts, each of a size that a client's buffer can hold."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def parts(table: pa.Table, rows: int, size: int) -> Iterator[pa.Table]:
    """All of it, in order: at most ``rows`` at a time, and at most ``size`` bytes unless one row has more."""
    if 0 < table.num_rows <= rows and table.nbytes <= size:
        yield table
        return
    begin = 0
    while begin < table.num_rows:
        part = table.slice(begin, rows)
        while part.num_rows > 1 and part.nbytes > size:
            part = part.slice(0, max(part.num_rows // 2, 1))
        yield part
        begin += part.num_rows
