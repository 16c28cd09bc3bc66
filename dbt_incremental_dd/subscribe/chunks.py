"""Tables in chunks, each small enough for a client's buffer."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

CHUNK_BYTES = 262_144
"""Default size of a chunk, as Arrow holds it; a single row may have more."""


def chunks(table: pa.Table, rows: int, size: int = CHUNK_BYTES) -> Iterator[pa.Table]:
    """The table in order: at most ``rows`` rows at a time, and at most ``size`` bytes unless one row has more."""
    if 0 < table.num_rows <= rows and table.nbytes <= size:
        yield table
        return
    begin = 0
    while begin < table.num_rows:
        chunk = table.slice(begin, rows)
        while chunk.num_rows > 1 and chunk.nbytes > size:
            chunk = chunk.slice(0, max(chunk.num_rows // 2, 1))
        yield chunk
        begin += chunk.num_rows
