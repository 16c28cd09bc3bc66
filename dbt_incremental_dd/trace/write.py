"""Writes batches: Parquet files under a trace's root, described for its log.

A file is not visible until a commit names it.
"""

from __future__ import annotations

import datetime
import logging
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.data_file import RETRACTS_ALL, DataFile
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.reads import count_written
from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.parquet.checksum import name_by_checksum
from dbt_incremental_dd.parquet.field_numbers import with_numbers
from dbt_incremental_dd.parquet.page_index import SUFFIX
from dbt_incremental_dd.parquet.page_index_writer import write_pages
from dbt_incremental_dd.storage.filesystems import make_folder
from dbt_incremental_dd.trace.arrow import nullable_inside
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_folder import write_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG = logging.getLogger(__name__)
"""Logs each file that the driver writes at DEBUG, with its ``rows`` and their ``bytes`` in memory."""
_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
DATA = "data"
"""The folder of a trace's files."""
ROWS_PER_FILE = 500_000
"""Maximum number of rows in a file, so that a probe by key can skip most files."""
ROWS_PER_GROUP = 20_000
"""Rows in a row group of an arranged file. Smaller ones make scans slower and footers larger."""
ROWS_PER_PAGE = 500
"""Rows that a probe of an arranged file reads at least. Compared with larger pages, files grow by a fifth and scans
take equally long; with half as many rows, scans would take longer."""
_BYTES_PER_DICTIONARY = 4096
"""Maximum size of a dictionary: it is read with each page of its row group."""
_PAGED: Mapping[str, Any] = {
    "write_page_index": True,
    "max_rows_per_page": ROWS_PER_PAGE,
    "dictionary_pagesize_limit": _BYTES_PER_DICTIONARY,
}
_COMPRESSION = "snappy"
"""A page of 500 values takes Arrow 1 us to decompress, and 17 us with zstd, which makes files two thirds as large."""
_SPARK: Mapping[str, str | int] = {"compression": _COMPRESSION, "maxRecordsPerFile": ROWS_PER_FILE}
_SPARK_PAGED: Mapping[str, int] = {
    "parquet.block.row.count.limit": ROWS_PER_GROUP,
    "parquet.page.row.count.limit": ROWS_PER_PAGE,
    "parquet.dictionary.page.size": _BYTES_PER_DICTIONARY,
}
_WRITTEN: Mapping[str, Any] = {"compression": _COMPRESSION, "write_page_checksum": True}
_AT_ONCE = 8
"""Footers read concurrently: in object storage each takes a request."""
_LONGEST_BOUND = 256
"""Characters; longer strings get no bounds."""


def write_arrow(
    storage: Storage,
    uri: str,
    table: pa.Table,
    schema: Schema,
    bounded: Sequence[str] = (),
    *,
    retracts_all: bool = False,
    folder: str = DATA,
    numbers: Mapping[str, int] | None = None,
) -> DataFile:
    """Writes a small table on the driver to one file in a folder below ``uri``, without a Spark job.

    ``retracts_all``: as in DataFile. ``numbers``: those that columns have in the file, as ``with_numbers`` takes them.
    """
    how: dict[str, Any] = {"retracts_all": retracts_all, "folder": folder, "numbers": numbers or {}}
    mirror = storage.mirror
    if mirror is not None:
        with suppress(OSError):  # this disk is full: the store is not
            local, root = pafs.LocalFileSystem(), mirror.new_folder(uri)
            written = _written(local, root, table, schema, bounded, **how)
            for path in (written.path, f"{written.path}{SUFFIX}"):
                if os.path.exists(f"{root}/{path}"):
                    mirror.written(uri, path)
            return written
    return _written(*storage.filesystem(uri), table, schema, bounded, **how)


def _written(
    filesystem: pafs.FileSystem,
    root: str,
    table: pa.Table,
    schema: Schema,
    bounded: Sequence[str],
    *,
    retracts_all: bool,
    folder: str,
    numbers: Mapping[str, int],
) -> DataFile:
    make_folder(filesystem, f"{root}/{folder}")
    path = f"{folder}/{RETRACTS_ALL if retracts_all else ''}{uuid.uuid4().hex}.parquet"
    _LOG.debug("writing %d rows", table.num_rows, extra={"rows": table.num_rows, "bytes": table.nbytes})
    table = nullable_inside(table).replace_schema_metadata({_SPARK_SCHEMA: schema.to_json().encode()})
    if numbers:
        table = pa.Table.from_arrays(table.columns, schema=with_numbers(table.schema, numbers))
    is_large = table.num_rows > ROWS_PER_GROUP
    how = {**(_paged(table) if is_large else {}), "write_statistics": _with_statistics(table)}
    footers: list[pq.FileMetaData] = []
    reached("file: before")
    with filesystem.open_output_stream(f"{root}/{path}") as out:
        pq.write_table(table, out, row_group_size=ROWS_PER_GROUP, metadata_collector=footers, **_WRITTEN, **how)
        size = out.tell()
    if isinstance(filesystem, pafs.LocalFileSystem):
        path = os.path.relpath(name_by_checksum(f"{root}/{path}"), root)
    reached("file: written")
    count_written(table.num_rows, size)
    return _described(filesystem, root, path, footer=footers[0], size=size, bounded=bounded, is_paged=is_large)


def _paged(table: pa.Table) -> dict[str, Any]:
    """Only columns of few values have dictionaries. Pages of any other one are read from one chunk, whatever row
    groups they come from; so are those of times and diffs, which every probe reads."""
    sample = table.slice(0, ROWS_PER_GROUP).combine_chunks()
    columns = zip(sample.column_names, sample.columns, strict=True)
    few = [path for name, column in columns if name not in (TIME, DIFF) for path in _of_few_values(name, column)]
    return {**_PAGED, "use_dictionary": few}


def _of_few_values(path: str, column: pa.ChunkedArray) -> Iterator[str]:
    """The paths of the leaf columns of which a row group's dictionary has room for all values."""
    if pa.types.is_struct(column.type):
        for number, field in enumerate(column.type):
            yield from _of_few_values(f"{path}.{field.name}", pc.struct_field(column, [number]))
    elif not pa.types.is_nested(column.type) and pc.unique(column).nbytes <= _BYTES_PER_DICTIONARY:
        yield path


def _with_statistics(table: pa.Table) -> list[str]:
    """The flat columns for which a file may have a minimum and maximum. Arrow's bounds ignore NaN, the greatest value
    in Spark, so that rows would be skipped that a filter admits."""
    columns = zip(table.column_names, table.columns, strict=True)
    return [name for name, column in columns if not pa.types.is_nested(column.type) and not _has_nan(column)]


def _has_nan(column: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())


def write_spark(
    storage: Storage,
    uri: str,
    frame: DataFrame,
    bounded: Sequence[str] = (),
    *,
    is_arranged: bool = False,
    folder: str = DATA,
) -> tuple[DataFile, ...]:
    """Writes a DataFrame of updates by one Spark job. Returns the files, without empty ones.

    ``is_arranged``: its partitions are sorted by the key of later probes. ``folder``: below ``uri``.
    """
    from dbt_incremental_dd.trace.spark_names import with_own_names

    folder = f"{folder}/{uuid.uuid4().hex}"
    reached("files: before")
    options = {**_SPARK, **(_SPARK_PAGED if is_arranged else {})}
    write_folder(storage, with_own_names(frame), f"{uri}/{folder}", options)
    if storage.is_local:
        _name_by_checksum(f"{uri}/{folder}")
    reached("files: written")
    files = describe_folder(storage, uri, folder, bounded, is_paged=is_arranged)
    count_written(sum(file.rows for file in files), sum(file.bytes for file in files))
    return files


def remove_files(storage: Storage, uri: str, files: Iterable[DataFile]) -> None:
    """Removes files that no commit names."""
    filesystem, root = storage.filesystem(uri)
    for file in files:
        for path in (f"{root}/{file.path}", f"{root}/{file.path}{SUFFIX}"):
            with suppress(FileNotFoundError):
                filesystem.delete_file(path)


def _name_by_checksum(folder: str) -> None:
    """Renames Spark's files. Hadoop's checksum files beside them keep the former names, so they are removed."""
    names = [name for name in os.listdir(folder) if name.endswith(".parquet")]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda name: name_by_checksum(f"{folder}/{name}"), names))
    for name in names:
        if os.path.exists(f"{folder}/.{name}.crc"):
            os.remove(f"{folder}/.{name}.crc")


def describe_folder(
    storage: Storage, uri: str, folder: str = "", bounded: Sequence[str] = (), *, is_paged: bool = False
) -> tuple[DataFile, ...]:
    """The Parquet files with rows in a folder below ``uri``."""
    filesystem, root = storage.filesystem(uri)
    written = filesystem.get_file_info(pafs.FileSelector(f"{root}/{folder}" if folder else root))
    names = sorted(info.base_name for info in written if info.base_name.endswith(".parquet"))
    paths = (f"{folder}/{name}" if folder else name for name in names)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        described = pool.map(lambda path: describe(filesystem, root, path, bounded, is_paged=is_paged), paths)
        return tuple(file for file in described if file.rows)


def describe(
    filesystem: pafs.FileSystem, root: str, path: str, bounded: Sequence[str], *, is_paged: bool = False
) -> DataFile:
    """A data file's rows, bytes and bounds, from its Parquet footer. ``is_paged``: store an index of its pages."""
    footer = pq.read_metadata(f"{root}/{path}", filesystem=filesystem)
    size = filesystem.get_file_info(f"{root}/{path}").size
    return _described(filesystem, root, path, footer=footer, size=size, bounded=bounded, is_paged=is_paged)


def _described(
    filesystem: pafs.FileSystem,
    root: str,
    path: str,
    footer: pq.FileMetaData,
    size: int,
    bounded: Sequence[str],
    *,
    is_paged: bool,
) -> DataFile:
    if footer.num_rows == 0:
        return DataFile(path, 0, size, first=0, last=0, min_diff=0, max_diff=0)
    if is_paged and footer.num_rows > ROWS_PER_GROUP:
        write_pages(filesystem, f"{root}/{path}", footer, bounded)
    stats = {name: _bounds(footer, name) for name in (TIME, DIFF, *bounded)}
    (first, last), (low, high) = stats[TIME] or (0, 0), stats[DIFF] or (0, 0)
    bounds = {name: stats[name] for name in bounded if stats[name] is not None}
    return DataFile(path, footer.num_rows, size, first=first, last=last, min_diff=low, max_diff=high, bounds=bounds)  # type: ignore[arg-type]


def _bounds(footer: pq.FileMetaData, name: str) -> tuple[Any, Any] | None:
    """(minimum, maximum) over all row groups; None if one of them has no bounds, has NULLs, or has dates outside the
    years 1 to 9999."""
    index = next((i for i in range(footer.num_columns) if footer.schema.column(i).path == name), None)
    if index is None:
        return None
    lows, highs = [], []
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(index).statistics
        if chunk is None or not chunk.has_min_max or chunk.null_count is None or chunk.null_count > 0:
            return None
        try:
            lows.append(chunk.min)
            highs.append(chunk.max)
        except OverflowError:  # out of the range of Python's dates
            return None
    low, high = min(lows), max(highs)
    return (low, high) if _usable(low) and _usable(high) else None


def _usable(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_BOUND
    return isinstance(value, int | datetime.date) and not isinstance(value, bool | datetime.datetime)
