"""Rows into an open table's files, and out of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING, Type
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.open_table.table import POSITION, POSITION_COLUMN, Format, TableFile, TableVersion
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.room import room, row_bytes
from dbt_incremental_dd.relation.stored import read
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.spark_reader import quoted
from dbt_incremental_dd.trace.write import ROWS_PER_FILE, write_arrow, write_spark

if TYPE_CHECKING:
    pass

CHANGE_TYPE = "_change_type"
_SAMPLE = 20_000
"""Rows by which the column that files are sorted by is chosen."""
_AS_FEW = 8
"""Times as many rows as by the best column."""
_BOUNDED = 15
"""Columns that files have bounds of, besides the position."""


@dataclass(frozen=True)
class Writer:
    """Writes files of a table in a folder, with the columns of ``schema``, sorted by ``sorted_by``."""

    uri: str
    schema: Schema
    sorted_by: tuple[str, ...]

    def rows(self, rows: Relation, first: int) -> tuple[DataFile, ...]:
        """A multiset's rows, as often as they count; their positions are from ``first`` on."""
        rows = rows.expand().columns(self.schema.names)
        stored = Schema((*self.schema, POSITION_COLUMN))
        bounded = (POSITION, *[c.name for c in self.schema if c.type in BOUNDED_TYPES][:_BOUNDED])
        if rows.table is not None:
            table = rows.table.arrow.drop_columns([DIFF])
            if self.sorted_by:
                table = table.sort_by([(name, "ascending") for name in self.sorted_by])
            table = table.append_column(POSITION, pa.array(np.arange(first, first + table.num_rows)))
            return tuple(
                write_arrow(rows.workspace.storage, self.uri, table.slice(at, ROWS_PER_FILE), stored, bounded)
                for at in range(0, table.num_rows, ROWS_PER_FILE)
            )
        frame = rows.frame.drop(DIFF)
        if self.sorted_by:
            columns = [quoted(name) for name in self.sorted_by]
            frame = frame.repartitionByRange(*columns).sortWithinPartitions(*columns)
        frame = frame.selectExpr("*", f"{first}L + monotonically_increasing_id() AS {POSITION}")
        files = write_spark(rows.workspace.storage, self.uri, frame, bounded, is_arranged=bool(self.sorted_by))
        return tuple(map(_require_ascending, files))

    def changes(self, change: Relation, folder: str) -> tuple[DataFile, ...]:
        """The rows that come and go, each as often as it does, with what it does."""
        does = Expr(f"CASE WHEN {DIFF} > 0 THEN 'insert' ELSE 'delete' END")
        are_single = change.table is not None and pc.all(pc.equal(pc.abs(change.table.arrow[DIFF]), 1)).as_py()
        rows = (
            (change if are_single else change.copies("dd_copy"))
            .extend([(CHANGE_TYPE, does)])
            .columns((*self.schema.names, CHANGE_TYPE))
        )
        storage, schema = rows.workspace.storage, Schema((*self.schema, Column(CHANGE_TYPE, STRING)))
        if rows.table is None:
            return write_spark(storage, self.uri, rows.frame.drop(DIFF), folder=folder)
        table = rows.table.arrow.drop_columns([DIFF])
        return (write_arrow(storage, self.uri, table, schema, folder=folder),)


def _require_ascending(file: DataFile) -> DataFile:
    """The file, whose positions are one after the other: what marks deleted rows rests on it."""
    low, high = file.bounds[POSITION]
    if high - low + 1 != file.rows:
        raise ValueError(f"{file.path} has {file.rows} rows, and the positions {low} to {high}")
    return file


def sort_column(rows: Relation) -> tuple[str, ...]:
    """A column whose values find few rows each, of those that files have bounds of: a number or date if there is one,
    since that is what readers select by. None where there is no such column.

    Rows that go are looked for by it.
    """
    bounded = [column for column in rows.schema if column.type in BOUNDED_TYPES and column.name != DIFF]
    names = [column.name for column in sorted(bounded, key=lambda column: column.type == STRING)]
    if not names:
        return ()
    if rows.table is not None:
        sample = rows.table.arrow.slice(0, _SAMPLE)
    else:
        sample = rows.frame.select(*map(quoted, names)).limit(_SAMPLE).toArrow()
    counts = {name: pc.count_distinct(sample[name]).as_py() for name in names}
    return (next(name for name in names if counts[name] * _AS_FEW >= max(counts.values())),)


def read_files(workspace: Workspace, uri: str, files: Sequence[DataFile], schema: Schema) -> Relation:
    """Files' rows, each with a diff of 1; on the driver where it has room for them."""
    count, wanted = total_rows(files), Schema((*schema, POSITION_COLUMN))
    has_room = count * row_bytes(wanted) <= room()
    most = max(workspace.thresholds.found_rows, workspace.thresholds.built_rows if has_room else 0)
    return with_diff(read(workspace, uri, files, wanted, most=most))


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


def plainly(rows: Relation, names: Sequence[str]) -> Relation:
    """Rows on the driver, with values that are equal where Spark's GROUP BY takes theirs to be: floats are numbers that
    stand for them, nested values are texts."""
    table = rows.table
    if table is None:
        return rows
    found: dict[str, Any] = {name: table.arrow[name] for name in table.arrow.column_names}
    types = {column.name: column.type for column in table.schema}
    for name in names:
        if not rows.groups_locally((name,)):
            found[name], types[name] = _stand_ins(found[name])
    schema = Schema(tuple(Column(name, types[name]) for name in found))
    return Relation.of(rows.workspace, pa.table(found), schema)


def _stand_ins(column: pa.ChunkedArray) -> tuple[pa.Array, Type]:
    if not pa.types.is_floating(column.type):
        texts = [None if value is None else repr(_normal(value)) for value in column.to_pylist()]
        return pa.array(texts, pa.string()), STRING
    values = np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy()) + 0.0  # of -0.0 this makes 0.0
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return pa.array(bits, mask=np.asarray(column.is_null().to_numpy())), LONG


def _normal(value: Any) -> Any:
    """A nested value such that equal ones have one text."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, dict):
        return [_normal(item) for item in value.values()]
    if isinstance(value, list):
        items = [_normal(item) for item in value]
        is_map = any(isinstance(item, tuple) for item in value)
        return sorted(items, key=repr) if is_map else items
    return tuple(map(_normal, value)) if isinstance(value, tuple) else value
