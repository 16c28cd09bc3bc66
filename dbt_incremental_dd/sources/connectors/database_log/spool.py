"""Rows on their way from the server to a collection: few are kept in memory, many go to files of a scratch folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, LONG, STRING, Field, Struct
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.connectors.database_log.errors import DatabaseError
from dbt_incremental_dd.sources.connectors.database_log.table import LogTable
from dbt_incremental_dd.sources.records import GONE, KEPT, ORDER, WAS, in_spark, on_driver
from dbt_incremental_dd.storage.filesystems import make_folder
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import struct

MOST_BYTES = 64 << 20
"""Of values, at a time in memory."""


@dataclass
class Spool:
    """Tables of the columns of ``schema``; those that came before the last are in files."""

    storage: Storage
    schema: Schema
    folder: str = ""
    rows: int = 0
    _paths: list[str] = field(default_factory=list)
    _last: pa.Table | None = None

    @property
    def is_split(self) -> bool:
        """Whether some of it is in files already."""
        return bool(self._paths)

    @property
    def table(self) -> pa.Table:
        """What is in memory."""
        return self._last if self._last is not None else _empty(self.schema)

    def wants(self, rows: int, size: int) -> bool:
        """Whether so many rows and bytes are to be added before more are held."""
        return rows >= self.storage.thresholds.taken_rows or size >= MOST_BYTES

    def add(self, table: pa.Table) -> None:
        """One more table."""
        if self._last is not None:
            self._write(self._last)
        self._last = table
        self.rows += table.num_rows

    def clear(self) -> None:
        """Drops what there is."""
        self.remove()
        self.rows, self._paths, self._last = 0, [], None

    def remove(self) -> None:
        """Removes the files."""
        if self.folder:
            self.storage.remove(self.folder)

    def records(self, workspace: Workspace) -> Relation:
        """All of it."""
        if not self._paths:
            return on_driver(workspace, self.table, self.schema)
        if self._last is not None:
            self._write(self._last)
            self._last = None
        frame = workspace.spark.read.schema(struct(self.schema)).parquet(*map(spark_uri, self._paths))
        return in_spark(workspace, frame, self.rows)

    def _write(self, table: pa.Table) -> None:
        self.folder = self.folder or self.storage.scratch("rows")
        filesystem, path = self.storage.filesystem(self.folder)
        make_folder(filesystem, path)
        name = f"{len(self._paths)}.parquet"
        pq.write_table(table, f"{path}/{name}", filesystem=filesystem, compression="zstd")
        self._paths.append(f"{self.folder}/{name}")
        reached("rows: put aside")


def _empty(schema: Schema) -> pa.Table:
    types = [(column.name, arrow_type(column.type)) for column in schema]
    return pa.schema(types).empty_table()


def change_schema(table: LogTable) -> Schema:
    """The columns of changes, as ``replica`` takes them."""
    extra = [Column(GONE, BOOLEAN)]
    if table.key:
        columns = {column.name: column for column in table.records}
        was = Struct(tuple(Field(name, columns[name].type) for name in table.key))
        extra = [Column(ORDER, LONG), *extra, Column(KEPT, STRING), Column(WAS, was)]
    return Schema((*table.records, *extra))


def texts(values: Sequence[bytes | None], name: str) -> pa.ChunkedArray:
    """A column of text from the server's bytes."""
    try:
        return pa.chunked_array([pa.array(values, pa.binary()).cast(pa.string())])
    except pa.ArrowException:
        raise DatabaseError(f"column {name} holds what is no UTF-8", "Correct those rows.") from None
