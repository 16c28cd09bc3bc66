"""Reads the rows of an open table's files, and tells which of them are deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.open_table.table import POSITION, POSITION_COLUMN, Format, TableFile, TableVersion
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import most_of, read
from dbt_incremental_dd.relation.workspace import Workspace


def read_files(workspace: Workspace, uri: str, files: Sequence[DataFile], schema: Schema) -> Relation:
    """Files' rows, each with a diff of 1; on the driver where it has room for them."""
    wanted = Schema((*schema, POSITION_COLUMN))
    return with_diff(read(workspace, uri, files, wanted, most=most_of(workspace, files, wanted)))


def with_diff(rows: Relation) -> Relation:
    """Rows that were read from a table's files, each with a diff of 1."""
    return rows.extend([(DIFF, Expr("1L"))])


def live(
    format: Format, version: TableVersion, files: Sequence[TableFile], rows: Relation, *, drop: bool = True
) -> Relation:
    """Of rows with positions in these files, those that are not deleted."""
    gone = deleted_positions(format, version, files, rows)
    if len(gone):
        table = pa.table({POSITION: gone, DIFF: np.ones(len(gone), np.int64)})
        marked = Relation.of(rows.workspace, table, Schema((POSITION_COLUMN, DIFF_COLUMN)))
        rows = rows.restrict(marked, (POSITION,), inside=False)
    return rows.columns(version.schema.names) if drop else rows


def deleted_positions(
    format: Format, version: TableVersion, files: Iterable[TableFile], rows: Relation
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The positions of deleted rows in those of the files that the rows may be of."""
    files = [file for file in files if file.deleted]
    if rows.table is not None and files:
        held = {file.data.path for file, _ in by_file(files, np.asarray(rows.table.arrow[POSITION].to_numpy()))}
        files = [file for file in files if file.data.path in held]
    storage = rows.workspace.storage
    found = [np.asarray(format.deleted(storage, version, file), np.int64) + file.first for file in files]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def by_file(
    files: Iterable[TableFile], positions: np.ndarray[Any, np.dtype[np.int64]]
) -> list[tuple[TableFile, np.ndarray[Any, np.dtype[np.int64]]]]:
    """The files that have any of the positions, and which ones, counted within the file."""
    ordered, positions = sorted(files, key=lambda file: file.first), np.sort(positions)
    if not ordered:
        return []
    starts = np.searchsorted(positions, [file.first for file in ordered])
    ends = np.searchsorted(positions, [file.first + file.data.rows for file in ordered])
    pairs = zip(ordered, starts, ends, strict=True)
    return [(file, positions[start:end] - file.first) for file, start, end in pairs if end > start]
