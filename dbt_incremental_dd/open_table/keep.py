"""Keeps an open table as its collection is: by the rows that have changed since, or written anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.open_table.matching import positions_of
from dbt_incremental_dd.open_table.rows import by_file, live, read_files
from dbt_incremental_dd.open_table.table import Table, TableChange, TableFile, TableVersion
from dbt_incremental_dd.open_table.writer import Writer, sort_column
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import in_interval, most_of, read
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.tiers import mergeable

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from dbt_incremental_dd.core.data_file import DataFile

_MOST_DELETED = 0.25
"""Share of a file's rows; with more, those that are left are written anew."""
_MERGED_ROWS = 500_000
"""Of files with many deleted rows, in one run."""
_FEW = 1_000
"""Rows of files that wait to be merged with others, however many of them are deleted."""


@dataclass(frozen=True)
class Kept:
    """What a run did to a table: its version afterwards, and why it was written anew, if it was."""

    version: TableVersion
    why: str = ""


def bring_up(workspace: Workspace, table: Table, log: Log, known: tuple[int, Time] | None = None) -> Kept:
    """Makes the table what its log has. ``known``: a version, which is known to have everything before a time.

    Raises CommitConflict, StateError, or ConfigError for columns that the format does not have; the table is then as
    it was.
    """
    table.format.require(table.name, table.schema)
    storage = workspace.storage
    try:
        version, why = table.format.load(storage, table.uri), ""
    except (OSError, ValueError, KeyError) as error:
        raise _damaged(table, error) from error
    upper = log.frontiers.upper
    if version is not None:
        if known is not None and known[0] == version.number:
            version = replace(version, upper=max(version.upper, known[1]))
        why = _why_anew(table, version, log)
    if version is None or why:
        return Kept(_anew(workspace, table, version, log), why)
    change = _change(workspace, table.schema, log, version.upper - 1)
    if change is None or change.is_empty:
        return Kept(version)
    made = _changed(workspace, table, version, change, upper)
    if made is None:
        why = "it lacks rows that its collection has had"
        return Kept(_anew(workspace, table, version, log), why)
    return Kept(_merged(workspace, table, made))


def _damaged(table: Table, error: Exception) -> StateError:
    return StateError(
        f"the table of {table.name} at {table.uri} cannot be read: {error}",
        "Remove its folder: the next run writes it anew.",
    )


def _why_anew(table: Table, version: TableVersion, log: Log) -> str:
    """Why nothing of what is there can stay; empty if it can."""
    if version.schema != table.schema:
        return "its columns are others"
    if not version.is_ours:
        return "somebody else has changed it"
    if not log.frontiers.since < version.upper <= log.frontiers.upper:
        return "the collection has no history since the table's last change"
    return ""


def _change(workspace: Workspace, schema: Schema, log: Log, after: Time) -> Relation | None:
    """The collection's updates after a time, consolidated, on the driver if they are few; None where there are none."""
    last = log.frontiers.last
    files = between(log.files, after, last)
    if not files:
        return None
    columns = Schema((*schema, TIME_COLUMN, DIFF_COLUMN))
    rows = read(workspace, log.uri, files, columns, most=workspace.thresholds.local_rows)
    rows = in_interval(rows, files, after, last).columns(schema.names)
    is_one_batch = len(files) == 1 and files[0].first == files[0].last
    return replace(rows, consolidated=is_one_batch).consolidate().localized()


def _anew(workspace: Workspace, table: Table, version: TableVersion | None, log: Log) -> TableVersion:
    """All of the collection's rows, in place of what is there."""
    wanted, files = Schema((*table.schema, DIFF_COLUMN)), log.summands(log.frontiers.last)
    written: tuple[DataFile, ...] = ()
    sorted_by = table.sorted_by
    if files:
        rows = read(workspace, log.uri, files, wanted, most=most_of(workspace, files, wanted)).consolidate()
        sorted_by = sorted_by or sort_column(rows)
        numbers = table.format.numbers(version, table.uri, table.schema)
        written = Writer(table.uri, table.schema, sorted_by, numbers).rows(replace(rows, positive=True), 0)
    change = TableChange(log.frontiers.upper, table.retained, came=written, replaces=table.schema, sorted_by=sorted_by)
    return table.format.commit(workspace.storage, table.uri, table.name, version, change)


def _changed(
    workspace: Workspace, table: Table, version: TableVersion, change: Relation, upper: Time
) -> TableVersion | None:
    """The version after a change of rows; None where the table lacks some that went."""
    went = change.filter(Expr(f"{DIFF} < 0")).localized()
    gone = positions_of(workspace, table, version, went)
    if gone is None:
        return None
    marked, emptied = _marked(workspace, table, version, gone)
    writer = _writer(table, version)
    came = writer.rows(replace(change.filter(Expr(f"{DIFF} > 0")), positive=True), _next_position(version.files))
    folder = table.format.changes_folder
    made = TableChange(
        upper,
        table.retained,
        came=came,
        went=emptied,
        gone=marked,
        changes=writer.changes(change, folder) if folder is not None and len(gone) else (),
    )
    return table.format.commit(workspace.storage, table.uri, table.name, version, made)


def _marked(
    workspace: Workspace, table: Table, version: TableVersion, gone: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[dict[str, BitMap64], list[TableFile]]:
    """The positions of all deleted rows of the files in which some go, and the files of which nothing is left."""
    marked: dict[str, BitMap64] = {}
    emptied = []
    for file, rows in by_file(version.files, gone):
        deleted = table.format.deleted(workspace.storage, version, file).copy()
        deleted.update(rows.tolist())
        if len(deleted) == file.data.rows:
            emptied.append(file)
        else:
            marked[file.data.path] = deleted
    return marked, emptied


def _writer(table: Table, version: TableVersion) -> Writer:
    numbers = table.format.numbers(version, table.uri, table.schema)
    return Writer(table.uri, table.schema, version.sorted_by, numbers)


def _next_position(files: tuple[TableFile, ...]) -> int:
    return max((file.first + file.data.rows for file in files), default=0)


def _merged(workspace: Workspace, table: Table, version: TableVersion) -> TableVersion:
    """The version with small files merged, and without rows that are marked as deleted, where it is time for that."""
    files = tuple(_to_merge(version))
    if not files:
        return version
    rows = read_files(workspace, table.uri, [file.data for file in files], table.schema)
    rows = replace(live(table.format, version, files, rows), positive=True)
    came = _writer(table, version).rows(rows, _next_position(version.files))
    change = TableChange(version.upper, version.retained, came=came, went=files, changes_rows=False)
    return table.format.commit(workspace.storage, table.uri, table.name, version, change)


def _to_merge(version: TableVersion) -> Iterator[TableFile]:
    """Small files once they are many, and of those with the most deleted rows a few: a row is written anew a few times
    only, and no run does much more than its change."""
    small = {file.path for file in mergeable(file.data for file in version.files)}
    left = _MERGED_ROWS
    for file in sorted(version.files, key=lambda file: -file.deleted / file.data.rows):
        is_stale = file.deleted > _MOST_DELETED * file.data.rows and left > 0
        if file.data.path in small:
            yield file
        elif is_stale and file.data.rows > _FEW:
            left -= file.data.rows
            yield file
