"""Reads files on the driver without a Spark job, for the few rows that a small delta touches."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.reads import count
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.duck.connections import is_imported
from dbt_incremental_dd.parquet.checksum import require_intact
from dbt_incremental_dd.parquet.page_reader import pages_to_read, probe_pages
from dbt_incremental_dd.parquet.probe import probe
from dbt_incremental_dd.trace.arrow import among, arrow_type, parquet_dataset
from dbt_incremental_dd.trace.data_folder import data_folder, page_folder
from dbt_incremental_dd.trace.file_cache import FileCache
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.write import ROWS_PER_GROUP, ROWS_PER_PAGE

_LOG = logging.getLogger(__name__)
"""Logs each read at DEBUG, with the files' ``paths``, the ``columns`` and the ``wanted`` keys."""


_LITTLE, _LITTLE_BYTES = 400_000, 2 << 20
"""So few values, of the columns that are wanted, and bytes are read by Arrow as a whole, and then filtered, which takes
no longer; small files beside large ones, too."""
_IMPORT = 10
"""In the time that importing DuckDB takes, 0.1 s, Arrow reads so many times as many."""
_FEW_FILES = 64
"""Of which each takes a part of a millisecond."""
_CACHE = FileCache()


class TooLarge(Exception):
    """Rows take more memory than they may: a file tells how many they are, not how long their texts are."""


def read_files(
    storage: Storage,
    uri: str,
    files: Sequence[DataFile],
    schema: Schema,
    keys: Mapping[str, Sequence[Any]] | None = None,
    together: pa.Table | None = None,
    most_bytes: float = math.inf,
) -> pa.Table:
    """The files' rows with the columns of ``schema``, whose types are readable. A column that a file lacks is NULL.

    ``keys`` filters by values of these columns; row groups without any are not read. ``together``: rows that have these
    values, but not as one of its rows has them, may be left out. Raises OSError for a file that is not as it was
    written, as far as ``require_intact`` checks, and TooLarge for rows that take more than ``most_bytes`` in memory.
    """
    columns = pa.schema([(column.name, arrow_type(column.type)) for column in schema])
    tables, others = _by_pages(storage, uri, files, columns, keys) if keys else ([], files)
    filesystem, root = data_folder(storage, uri, others)
    small, large = _by_size({f"{root}/{file.path}": file for file in others}, len(columns))
    given = keys or {}
    read = [
        _read(filesystem, paths, columns, given, together, most_bytes, is_little=paths is small)
        for paths in (small, large)
        if paths
    ]
    count(total_rows(others), sum(table.num_rows for table in read), sum(file.bytes for file in others))
    tables += read
    return pa.concat_tables(tables) if tables else columns.empty_table()


def _by_pages(
    storage: Storage, uri: str, files: Sequence[DataFile], columns: pa.Schema, keys: Mapping[str, Sequence[Any]]
) -> tuple[list[pa.Table], Sequence[DataFile]]:
    """The rows of the keys in those files of which few pages are read, and the other files."""
    filesystem, root, parts = page_folder(storage, uri, files)
    by_path = {f"{root}/{file.path}": file for file in files}
    tables, others = probe_pages(filesystem, list(by_path), columns, keys, parts)
    return tables, [by_path[path] for path in others]


def _by_size(files: Mapping[str, DataFile], columns: int) -> tuple[list[str], list[str]]:
    """The paths of the files that Arrow reads as a whole, so many columns of them, and of the others."""
    if _is_little(list(files.values()), columns):
        return list(files), []
    most = _LITTLE // max(columns, 1)
    small = [path for path, file in files.items() if file.rows <= most and file.bytes <= _LITTLE_BYTES]
    small = small if len(small) <= _FEW_FILES else []
    return small, [path for path in files if path not in set(small)]


def _read(
    filesystem: fs.FileSystem,
    paths: Sequence[str],
    columns: pa.Schema,
    keys: Mapping[str, Sequence[Any]],
    together: pa.Table | None,
    most_bytes: float,
    *,
    is_little: bool,
) -> pa.Table:
    """The rows of the keys, by whoever is quickest. Raises TooLarge."""
    _LOG.debug("reading %d files", len(paths), extra={"paths": paths, "columns": columns.names, "wanted": keys})
    found = None if is_little else probe(filesystem, paths, columns, keys, together)
    if found is not None:
        return found
    require_intact(paths if isinstance(filesystem, fs.LocalFileSystem) else ())
    table = _cached(filesystem, paths, columns) if is_little else None
    if table is not None:
        if table.nbytes > most_bytes:
            raise TooLarge
        return among(table, keys)
    dataset = parquet_dataset(paths, filesystem, columns)
    if most_bytes == math.inf or all(pa.types.is_primitive(field.type) for field in columns):
        return dataset.to_table(filter=_filters(keys))
    batches, taken = [], 0
    for batch in dataset.to_batches(filter=_filters(keys)):
        taken += batch.nbytes
        if taken > most_bytes:
            raise TooLarge
        batches.append(batch)
    return pa.Table.from_batches(batches, columns)


def _is_little(files: Sequence[DataFile], columns: int) -> bool:
    most = 1 if is_imported() else _IMPORT
    return total_rows(files) * columns <= most * _LITTLE and sum(file.bytes for file in files) <= most * _LITTLE_BYTES


def _cached(filesystem: fs.FileSystem, paths: Sequence[str], columns: pa.Schema) -> pa.Table | None:
    """All rows; None where there are many files, which a dataset reads side by side, or other types than expected."""
    if len(paths) > _FEW_FILES:
        return None
    tables = [_CACHE.table(filesystem, path, columns) for path in paths]
    return pa.concat_tables(tables) if all(table is not None for table in tables) else None


def find_rows(
    storage: Storage, uri: str, files: Sequence[DataFile], schema: Schema, keys: Mapping[str, Sequence[Any]]
) -> pa.Table | None:
    """The rows of the keys, as ``read_files`` returns them; None if there are too many rows to search or to return.

    Files whose bounds exclude the keys are left out.
    """
    most, files = storage.thresholds, matching(files, keys)
    if searched_rows(storage, uri, files, schema, keys) > most.probed_rows:
        return None
    table = read_files(storage, uri, files, schema, keys)
    return table if table.num_rows <= most.found_rows else None


def searched_rows(
    storage: Storage, uri: str, files: Sequence[DataFile], schema: Schema, keys: Mapping[str, Sequence[Any]]
) -> int:
    """How many of the files' rows ``read_files`` looks through: all, unless they are many, and pages tell where the
    keys are."""
    most, rows, size = storage.thresholds, total_rows(files), sum(file.bytes for file in files)
    if rows <= most.probed_rows and size <= most.probed_bytes:
        return rows
    large = [file for file in files if file.rows > ROWS_PER_GROUP]
    too_many = max(rows, most.probed_rows + 1)
    for column in filter(None, map(schema.find, keys if large else ())):
        pages = pages_with(storage, uri, large, column, keys[column.name])
        if pages is not None:
            skipped = total_rows(large) - pages * ROWS_PER_PAGE
            skipped_bytes = sum(file.bytes for file in large) * skipped / total_rows(large)
            return rows - skipped if size - skipped_bytes <= most.probed_bytes else too_many
    return too_many


def pages_with(
    storage: Storage, uri: str, files: Sequence[DataFile], column: Column, values: Sequence[Any]
) -> int | None:
    """How many pages of the files may hold one of the column's sorted values; None if one has no index of it."""
    filesystem, root, _ = page_folder(storage, uri, files)
    sought = pa.array(values, arrow_type(column.type))
    return pages_to_read(filesystem, [f"{root}/{file.path}" for file in files], column.name, sought)


def _filters(keys: Mapping[str, Sequence[Any]]) -> pc.Expression | None:
    """The keys as a filter. The bounds of each column's sorted values let Arrow skip row groups."""
    found = None
    for name, values in keys.items():
        column = pc.field(name)
        part = pc.scalar(False)
        if values:
            part = (column >= values[0]) & (column <= values[-1]) & column.isin(list(values))
        found = part if found is None else found & part
    return found
