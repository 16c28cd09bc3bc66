"""Writes the files of an open table: its rows, with their positions, and what has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, Column, Schema
from dbt_incremental_dd.core.types import NESTED, STRING
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.open_table.table import POSITION, POSITION_COLUMN
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES
from dbt_incremental_dd.trace.spark_reader import quoted
from dbt_incremental_dd.trace.spark_to_arrow import to_arrow
from dbt_incremental_dd.trace.write import ROWS_PER_FILE, write_arrow, write_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CHANGE_TYPE = "_change_type"
_SAMPLE = 20_000
"""Rows by which the column that files are sorted by is chosen."""
_AS_FEW = 8
"""Times as many rows as by the best column."""
_FIELD_ID = "parquet.field.id"
"""What Spark calls a column's number among its metadata."""
_BOUNDED = 15
"""Columns that files have bounds of, besides the position."""


@dataclass(frozen=True)
class Writer:
    """Writes files of a table in a folder, with the columns of ``schema``, sorted by ``sorted_by``. ``numbers``: those
    that the columns have in the files, by their paths."""

    uri: str
    schema: Schema
    sorted_by: tuple[str, ...]
    numbers: Mapping[str, int] = field(default_factory=dict)

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
            parts = (table.slice(at, ROWS_PER_FILE) for at in range(0, table.num_rows, ROWS_PER_FILE))
            storage, numbers = rows.workspace.storage, self.numbers
            return tuple(write_arrow(storage, self.uri, part, stored, bounded, numbers=numbers) for part in parts)
        frame = rows.frame.drop(DIFF)
        if self.sorted_by:
            columns = [quoted(name) for name in self.sorted_by]
            frame = frame.repartitionByRange(*columns).sortWithinPartitions(*columns)
        frame = frame.selectExpr("*", f"{first}L + monotonically_increasing_id() AS {POSITION}")
        frame = self._numbered(frame)
        files = write_spark(rows.workspace.storage, self.uri, frame, bounded, is_arranged=bool(self.sorted_by))
        return tuple(map(_require_ascending, files))

    def _numbered(self, frame: DataFrame) -> DataFrame:
        """With the columns' numbers, which Spark then writes into its files. It has none for elements of lists and
        maps, and readers use numbers only where all columns have one: there they find columns by their names."""
        if not self.numbers or any(isinstance(column.type, NESTED) for column in self.schema):
            return frame
        columns = ((quoted(name), name) for name in frame.columns)
        return frame.select(*(column.alias(name, metadata={_FIELD_ID: self.numbers[name]}) for column, name in columns))

    def changes(self, change: Relation, folder: str) -> tuple[DataFile, ...]:
        """The rows that come and go, each as often as it does, with what it does."""
        does = Expr(f"CASE WHEN {DIFF} > 0 THEN 'insert' ELSE 'delete' END")
        are_single = change.table is not None and pc.all(pc.equal(pc.abs(change.table.arrow[DIFF]), 1)).as_py()
        each = change if are_single else change.copies("dd_copy")
        rows = each.extend([(_CHANGE_TYPE, does)]).columns((*self.schema.names, _CHANGE_TYPE))
        storage, schema = rows.workspace.storage, Schema((*self.schema, Column(_CHANGE_TYPE, STRING)))
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
        sample = to_arrow(rows.frame.select(*map(quoted, names)), _SAMPLE)
    counts = {name: pc.count_distinct(sample[name]).as_py() for name in names}
    return (next(name for name in names if counts[name] * _AS_FEW >= max(counts.values())),)
