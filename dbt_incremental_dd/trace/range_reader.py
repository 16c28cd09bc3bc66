"""Reads the rows of a range of one column's values on the driver, from those row groups that may have some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.reads import count
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.parquet.checksum import require_intact
from dbt_incremental_dd.trace.arrow import arrow_type, parquet_dataset
from dbt_incremental_dd.trace.data_folder import data_folder
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import total_rows


def overlapping(files: Sequence[DataFile], column: str, low: Any, high: Any) -> tuple[DataFile, ...]:
    """The files that may have rows with ``low <= column < high``, by the log alone. ``low`` None: any lower value."""
    return tuple(file for file in files if _may_hold(file.bounds.get(column), low, high))


def _may_hold(bounds: tuple[Any, Any] | None, low: Any, high: Any) -> bool:
    return bounds is None or (bounds[0] < high and (low is None or bounds[1] >= low))


def read_range(
    storage: Storage, uri: str, files: Sequence[DataFile], schema: Schema, column: str, low: Any, high: Any, most: int
) -> pa.Table | None:
    """The files' rows with ``low <= column < high``, with the columns of ``schema``, whose types are readable; None if
    they are more than ``most``. ``low`` None: any lower value. Raises OSError for a damaged file."""
    columns = pa.schema([(one.name, arrow_type(one.type)) for one in schema])
    if not files:
        return columns.empty_table()
    filesystem, root = data_folder(storage, uri, files)
    paths = [f"{root}/{file.path}" for file in files]
    require_intact(paths if isinstance(filesystem, fs.LocalFileSystem) else ())
    wanted = pc.field(column) < pa.scalar(high, columns.field(column).type)
    if low is not None:
        wanted &= pc.field(column) >= pa.scalar(low, columns.field(column).type)
    dataset = parquet_dataset(paths, filesystem, columns)
    if dataset.count_rows(filter=wanted) > most:
        return None
    table = dataset.to_table(filter=wanted)
    count(total_rows(files), table.num_rows, sum(file.bytes for file in files))
    return table
