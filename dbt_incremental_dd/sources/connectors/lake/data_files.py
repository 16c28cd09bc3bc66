"""Rows of a lake table's data files, all of a file or some: read on the driver where they are few, else by Spark."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dbt_incremental_dd.core.plain_text import Unclear
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING
from dbt_incremental_dd.duck.connections import database
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.room import room, table_bytes
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.formats.parquet import as_spark_writes, is_ancient
from dbt_incremental_dd.sources.partitions import value_of
from dbt_incremental_dd.sources.paths import literal
from dbt_incremental_dd.sources.records import in_spark, no_records, on_driver
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.arrow import arrow_type, is_readable
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import quoted, struct

if TYPE_CHECKING:
    from pyroaring import BitMap64
    from pyspark.sql import DataFrame

_LOG = logging.getLogger(__name__)
"""Tells each read at DEBUG, with the number of ``rows`` that it brings and the ``files`` that it opens."""
_PATH, _ROW = "dd_path", "dd_row"
_SCHEME = r"^([A-Za-z][A-Za-z0-9+.-]*:)?/*"
_PLAIN_URI = "/_-!.~'()*,;:$&+=@"
"""Characters that Java's URIs leave as they are."""
_MOST_FILES = 64
"""Files that the driver opens one by one at most."""
_BROADCAST = 2_000_000
"""Positions that are sent to every task at most."""


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one Parquet file. ``rows``: how many the file has at most; ``only``: the positions that are meant, all
    without; ``but``: positions that are not. ``columns``: the file's names and types for the table's columns, in their
    order; what the file does not hold is NULL, unless ``constants`` has its text."""

    uri: str
    rows: int
    columns: StructType
    constants: tuple[tuple[str, str | None], ...] = ()
    only: BitMap64 | None = None
    but: BitMap64 | None = None

    @property
    def count(self) -> int:
        """How many rows are meant, at most."""
        return len(self.only) if self.only is not None else self.rows


def read_parts(workspace: Workspace, schema: Schema, parts: Sequence[Part], *, most: int = 0) -> Relation:
    """The parts' rows in the columns of ``schema``; at most ``most`` on the driver, and what is few in any case."""
    rows = sum(part.count for part in parts)
    _LOG.debug("reading %d rows", rows, extra={"rows": rows, "files": [part.uri for part in parts]})
    if not parts:
        return no_records(workspace, schema)
    few = _read_few(workspace.storage, schema, parts, rows, most)
    if few is not None:
        return on_driver(workspace, few, schema)
    groups: dict[tuple[Any, ...], list[Part]] = {}
    for part in parts:
        names = tuple(name for name, _ in part.constants)
        groups.setdefault((part.columns.json(), names, part.only is None), []).append(part)
    frames = [_read(workspace, schema, group) for group in groups.values()]
    return in_spark(workspace, reduce(lambda one, other: one.unionAll(other), frames), rows)


def compared_parts(
    workspace: Workspace, schema: Schema, came: Sequence[Part], went: Sequence[Part]
) -> tuple[Relation, Relation | None]:
    """The rows that came and those that went, which will be compared: most are the same where files were written anew.
    On the driver if it has room for both, since that takes a fraction of the time of a Spark job."""
    rows = sum(part.count for part in (*came, *went))
    has_room = bool(went) and rows <= workspace.thresholds.found_rows and table_bytes(rows, schema) <= room()
    most = rows if has_room else 0
    removed = read_parts(workspace, schema, went, most=most) if went else None
    return read_parts(workspace, schema, came, most=most), removed


def missing(storage: Storage, parts: Sequence[Part]) -> str | None:
    """A file that is not there any more; None where all are."""
    for uri in dict.fromkeys(part.uri for part in parts):
        filesystem, path = filesystem_of(storage, uri)
        if filesystem.get_file_info(path).type != pafs.FileType.File:
            return uri
    return None


def filesystem_of(storage: Storage, uri: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a data file's URI, as Hadoop writes it, and the path there."""
    parsed = urlparse(uri) if re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:/", uri) else None
    if parsed is None or parsed.scheme == "file":
        return storage.filesystem(uri if parsed is None else re.sub(r"^file:/+", "/", uri))
    return storage.filesystem(re.sub(r"^s3[an]:", "s3:", uri))


# By Spark


def _read(workspace: Workspace, schema: Schema, parts: Sequence[Part]) -> DataFrame:
    """Parts with the same columns and names of constants, which all have ``only`` or all have none."""
    physical, constants = parts[0].columns, [name for name, _ in parts[0].constants]
    inside = StructType([field for field in physical if field.name not in constants])
    uris = dict.fromkeys(spark_uri(literal(part.uri)) for part in parts)
    frame = workspace.spark.read.schema(inside).parquet(*uris)
    is_marked = any(part.only is not None or part.but for part in parts)
    if constants or is_marked:
        path = F.regexp_replace(F.col("_metadata.file_path"), _SCHEME, "")
        frame = frame.select("*", path.alias(_PATH), F.col("_metadata.row_index").alias(_ROW))
    if is_marked:
        how = "left_semi" if parts[0].only is not None else "left_anti"
        marked, count = _marks(workspace, parts)
        frame = frame.join(marked if count > _BROADCAST else F.broadcast(marked), [_PATH, _ROW], how)
    if constants:
        texts = {name: [dict(part.constants)[name] or None for part in parts] for name in constants}
        table = pa.table(
            {_PATH: [_plain(part.uri) for part in parts], **{n: pa.array(v, pa.string()) for n, v in texts.items()}}
        )
        names = {name: f"dd_constant{i}" for i, name in enumerate(constants)}
        table = table.rename_columns([_PATH, *names.values()])
        told = Table(table, Schema(tuple(Column(name, STRING) for name in table.column_names)))
        frame = frame.join(F.broadcast(workspace.frame(told)), _PATH)
        for name, given in names.items():
            frame = frame.withColumn(name, quoted(given).cast(physical[name].dataType))
    wanted = struct(schema)
    return frame.select(
        *(quoted(own.name).cast(field.dataType).alias(field.name) for own, field in zip(physical, wanted, strict=True))
    )


def _marks(workspace: Workspace, parts: Sequence[Part]) -> tuple[DataFrame, int]:
    """Which rows are meant, or which are not, by the file's path and the row's position."""
    paths: list[pa.Array] = []
    rows: list[pa.Array] = []
    for part in parts:
        marked = part.only if part.only is not None else part.but
        if marked:
            rows.append(pa.array(marked, pa.int64()))
            paths.append(pa.repeat(pa.scalar(_plain(part.uri)), len(marked)))
    table = pa.table({_PATH: pa.chunked_array(paths), _ROW: pa.chunked_array(rows)})
    return workspace.frame(Table(table, Schema((Column(_PATH, STRING), Column(_ROW, LONG))))), table.num_rows


def _plain(uri: str) -> str:
    """A file's path as Spark tells it, without the scheme."""
    text = re.sub(_SCHEME, "", uri)
    return "".join(char if ord(char) > 127 else quote(char, safe=_PLAIN_URI) for char in text)


# On the driver


def _read_few(storage: Storage, schema: Schema, parts: Sequence[Part], rows: int, most: int) -> pa.Table | None:
    """The rows, without a Spark job; None where there are many, or Arrow might read others than Spark."""
    if rows > max(storage.thresholds.taken_rows, most) or len(parts) > _MOST_FILES or not is_readable(schema):
        return None
    tables = []
    for part in parts:
        table = _few(storage, schema, part)
        if table is None:
            return None
        tables.append(table)
    return pa.concat_tables(tables)


def _few(storage: Storage, schema: Schema, part: Part) -> pa.Table | None:
    filesystem, path = filesystem_of(storage, part.uri)
    constants = dict(part.constants)
    with pq.ParquetFile(path, filesystem=filesystem, coerce_int96_timestamp_unit="us") as file:
        found = _types(file)
        wanted = {own.name: arrow_type(column.type) for own, column in zip(part.columns, schema, strict=True)}
        names = [name for name in wanted if name in found and name not in constants]
        if any(found[name] != wanted[name] for name in names):
            return None
        table = _rows(file, filesystem, path, part, names)
    columns = []
    for own, column in zip(part.columns, schema, strict=True):
        dtype = arrow_type(column.type)
        if own.name in constants:
            try:
                value = value_of(constants[own.name] or None, column.type)
            except Unclear:
                return None
            columns.append(pa.chunked_array([pa.repeat(pa.scalar(value, dtype), table.num_rows)]))
        elif own.name in found:
            values = table[own.name].cast(dtype)
            if is_ancient(values, column.type):
                return None
            columns.append(values)
        else:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, dtype)]))
    return pa.table(columns, list(schema.names))


def _types(file: pq.ParquetFile) -> dict[str, pa.DataType]:
    """The columns' types as Spark sees them; INT96 are instants."""
    int96 = {c.path for i in range(len(file.schema)) if (c := file.schema.column(i)).physical_type == "INT96"}
    utc = pa.timestamp("us", "UTC")
    return {field.name: utc if field.name in int96 else field.type for field in as_spark_writes(file.schema_arrow)}


def _rows(file: pq.ParquetFile, filesystem: pafs.FileSystem, path: str, part: Part, names: Sequence[str]) -> pa.Table:
    """The part's rows with some of the file's columns; of no column, as many rows of none."""
    if part.only is not None:
        if isinstance(filesystem, pafs.LocalFileSystem) and names and not set("*?[]{}\\") & set(path):
            return _by_position(path, names, part.only)
        return _of_row_groups(file, names, part.only)
    table = file.read(columns=list(names))
    if not part.but:
        return table
    return table.take(pa.array([row for row in range(table.num_rows) if row not in part.but], pa.int64()))


def _by_position(path: str, names: Sequence[str], only: BitMap64) -> pa.Table:
    """DuckDB decodes of a file what the positions select."""
    with database() as connection:
        connection.register("positions", pa.table({"row": pa.array(only, pa.int64())}))
        wanted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        source = "read_parquet($path, file_row_number = true, hive_partitioning = false)"
        sql = f"SELECT {wanted} FROM {source} WHERE file_row_number IN (SELECT row FROM positions)"
        return connection.sql(sql, params={"path": path}).to_arrow_table()


def _of_row_groups(file: pq.ParquetFile, names: Sequence[str], only: BitMap64) -> pa.Table:
    """Arrow reads the row groups that hold the positions."""
    tables, first = [file.schema_arrow.empty_table().select(list(names))], 0
    for number in range(file.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        inside = [row - first for row in only if first <= row < first + rows]
        if inside:
            tables.append(file.read_row_group(number, columns=list(names)).take(inside))
        first += rows
    return pa.concat_tables(tables)
