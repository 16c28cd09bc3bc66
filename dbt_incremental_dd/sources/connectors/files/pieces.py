"""An intake of large Parquet files on the driver: records in order of their keys, some hundred thousands at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from dbt_incremental_dd.duck.sorting import sorted_batches
from dbt_incremental_dd.local.whole_groups import whole_groups
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.formats.parquet import FIRST_DATE, as_spark_writes
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.sources.poll_result import Pieces
from dbt_incremental_dd.sources.records import FILE, on_driver
from dbt_incremental_dd.trace.arrow import arrow_type, is_flat, is_ordered
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.write import ROWS_PER_FILE

_ROWS_AT_ONCE = 1 << 17
_BYTES_AT_ONCE = 1 << 28
_UPDATES_PER_KEY = 2
"""That are stored: those of a row, and perhaps of a former one that has not been compacted yet."""
_PLACE = "dd_file_place"
"""INT: which of the files a record is from."""


def in_pieces(
    request: PollRequest[FilesSpec], filesystem: pafs.FileSystem, paths: Sequence[str], columns: Schema, size: int
) -> Pieces | None:
    """The files' records; None where Spark might read others, or has to read them because they are too many bytes
    (``size``), or where the envelope looks at more than the records and the stored row of a key."""
    spec, most = request.spec, request.workspace.thresholds.sorted_bytes
    key = [column.name for name in _sort_key(spec) if (column := columns.find(name))]
    if not request.in_pieces or not 0 < size <= most or len(key) < len(_sort_key(spec)):
        return None
    if spec.format != "parquet" or spec.options or spec.event_time or not spec.envelope.takes_pieces(spec.settings):
        return None
    if not is_flat(columns) or not is_ordered(columns.select(tuple(key))):
        return None
    records = 0
    for path in paths:
        footer = _footer(filesystem, path, columns)
        if footer is None:
            return None
        records += footer.num_rows
    if key and not _are_found(request, records):
        return None
    return Pieces(lambda: _pieces(request.workspace, filesystem, paths, columns, key))


def _sort_key(spec: FilesSpec) -> tuple[str, ...]:
    return spec.envelope.sort_key(spec.settings)


def _are_found(request: PollRequest[FilesSpec], records: int) -> bool:
    """Whether the driver may hold the stored rows of a piece's keys, and may search for them among the rows from the
    piece's first key to its last."""
    if request.log is None:
        return True
    most, pieces = request.workspace.thresholds, max(records / ROWS_PER_FILE, 1)
    found, searched = _UPDATES_PER_KEY * records / pieces, total_rows(request.log.files) / pieces
    return found <= most.found_rows and searched <= most.probed_rows


def _footer(filesystem: pafs.FileSystem, path: str, columns: Schema) -> pq.FileMetaData | None:
    """The file's footer. Returns None if it has other columns, or if their bounds do not say that Spark sees the same
    values in them as Arrow."""
    with pq.ParquetFile(path, filesystem=filesystem) as file:
        found, footer = as_spark_writes(file.schema_arrow), file.metadata
    if [(field.name, field.type) for field in found] != [(c.name, arrow_type(c.type)) for c in columns]:
        return None
    dated = [place for place, c in enumerate(columns) if c.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ)]
    groups = (footer.row_group(number) for number in range(footer.num_row_groups))
    is_clear = all(_is_recent(group.column(place), columns.columns[place]) for group in groups for place in dated)
    return footer if is_clear else None


def _is_recent(chunk: pq.ColumnChunkMetaData, column: Column) -> bool:
    """Whether bounds say that all dates are in years of which nothing is unclear."""
    stats = chunk.statistics
    if stats is None or stats.null_count == chunk.num_values:
        return stats is not None
    try:
        low, high = stats.min, stats.max
    except (OverflowError, ValueError):  # outside of the years that Python knows
        return False
    first = FIRST_DATE.get(column.type)
    return low is not None and high is not None and (first is None or low >= first)


def _pieces(
    workspace: Workspace, filesystem: pafs.FileSystem, paths: Sequence[str], columns: Schema, key: Sequence[str]
) -> Iterator[Relation]:
    own = [(column.name, arrow_type(column.type)) for column in columns]
    schema, names = pa.schema([*own, (_PLACE, pa.int32())]), pa.array(paths, pa.string())
    reader = pa.RecordBatchReader.from_batches(schema, _batches(filesystem, paths, schema))
    with _room(workspace.storage) as folder:
        batches = sorted_batches(reader, key, folder) if key else reader
        for table in whole_groups(_joined(batches), key):
            records = table.drop_columns([_PLACE]).append_column(FILE, names.take(table[_PLACE].combine_chunks()))
            yield on_driver(workspace, records, Schema((*columns, Column(FILE, STRING))))


@contextmanager
def _room(storage: Storage) -> Iterator[str]:
    """A folder for what does not fit into memory: where the collections are, if that is a local disk."""
    if not storage.is_local:
        with tempfile.TemporaryDirectory(prefix="dd-sort-") as folder:
            yield folder
        return
    folder = storage.scratch("sort")
    os.makedirs(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _batches(filesystem: pafs.FileSystem, paths: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for place, path in enumerate(paths):
        with pq.ParquetFile(path, filesystem=filesystem) as file:
            for batch in file.iter_batches(_ROWS_AT_ONCE):
                places = pa.repeat(pa.scalar(place, pa.int32()), batch.num_rows)
                table = pa.Table.from_batches([batch]).append_column(_PLACE, places).cast(schema)
                yield from table.combine_chunks().to_batches()


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Of about as many rows as a file has, or fewer that are large."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        rows, size = (sum(numbers) for numbers in zip(*((one.num_rows, one.nbytes) for one in held), strict=True))
        if rows >= ROWS_PER_FILE - _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)
