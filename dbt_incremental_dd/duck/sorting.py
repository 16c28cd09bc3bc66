"""Sorts more rows than there is memory for: DuckDB keeps on disk what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from dbt_incremental_dd.duck.connections import spilling
from dbt_incremental_dd.duck.sql import identifier
from dbt_incremental_dd.untrusted.limits import machine_memory

_SHARE_OF_MEMORY = 8
"""Of the machine's memory, an eighth is for the rows: several sources may be sorted at once."""


def sorted_batches(rows: pa.RecordBatchReader, by: Sequence[str], folder: str) -> Iterator[pa.RecordBatch]:
    """All rows, ascending by some columns, NULLs first, in batches of some size. What does not fit into memory goes to
    the folder, until the last one.

    Raises ``duck.connections.error`` for values that DuckDB does not hold, and where the disk is full.
    """
    order = ", ".join(f"{identifier(name)} ASC NULLS FIRST" for name in by)
    with spilling(folder, machine_memory() // _SHARE_OF_MEMORY) as connection:
        connection.register("given", rows)
        for batch in connection.sql(f"SELECT * FROM given ORDER BY {order}").to_arrow_reader():
            yield batch.cast(rows.schema)
