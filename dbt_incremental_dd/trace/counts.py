"""The numbers of rows that updates add and remove, with multiplicity."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.trace.layout import Storage


def count(diffs: pa.ChunkedArray) -> tuple[int, int]:
    """(added, removed) from a column of diffs."""
    added = pc.sum(pc.max_element_wise(diffs, 0)).as_py() or 0
    removed = pc.sum(pc.min_element_wise(diffs, 0)).as_py() or 0
    return added, -removed


def _diffs(filesystem: pafs.FileSystem, path: str) -> pa.ChunkedArray:
    return pq.read_table(path, columns=[DIFF], filesystem=filesystem, page_checksum_verification=True)[DIFF]


def count_stored(storage: Storage, uri: str, files: Iterable[DataFile]) -> tuple[int, int]:
    """(added, removed) from the files of a trace. Files whose diffs are all equal are not opened."""
    filesystem, root = storage.filesystem(uri)
    added = removed = 0
    for file in files:
        if file.min_diff == file.max_diff:
            plus, minus = max(file.min_diff, 0) * file.rows, max(-file.min_diff, 0) * file.rows
        else:
            plus, minus = count(_diffs(filesystem, f"{root}/{file.path}"))
        added, removed = added + plus, removed + minus
    return added, removed
