"""Merges files of updates on the driver, without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import TIME, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.duck.connections import error
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.sums import sums

_BYTES = 256 << 20
"""Maximum size of the files, which are compressed."""


def merged(
    storage: Storage,
    uri: str,
    files: Sequence[DataFile],
    schema: Schema,
    since: Time,
    diffs: Sequence[str],
    sort_by: Sequence[str],
) -> pa.Table | None:
    """The files' updates with the columns of ``schema``: times before ``since`` are ``since``, those of equal rows are
    one whose ``diffs`` are summed, without rows whose diffs are all 0; sorted by ``sort_by``, then by time.

    None where Spark has to do it: too many rows or bytes, types that the driver does not read, sums that do not fit.
    Raises OSError for a file that is not as it was written.
    """
    is_large = total_rows(files) > storage.thresholds.local_rows or sum(file.bytes for file in files) > _BYTES
    if is_large or any(arrow_type(column.type) is None for column in schema):
        return None
    return summed(read_files(storage, uri, files, schema), since, diffs, sort_by)


def summed(updates: pa.Table, since: Time, diffs: Sequence[str], sort_by: Sequence[str]) -> pa.Table | None:
    """The same of updates that have been read. None where sums do not fit."""
    times = pc.max_element_wise(updates[TIME], pa.scalar(since, pa.int64()))
    advanced = updates.set_column(updates.column_names.index(TIME), TIME, times)
    order = [(name, "ascending") for name in dict.fromkeys((*sort_by, TIME))]
    try:
        found = sums(advanced, diffs)
        nonzero = (pc.not_equal(found[name], pa.scalar(0).cast(found[name].type)) for name in diffs)
        return found.filter(fold(pc.or_, nonzero)).sort_by(order)
    except (error(), pa.ArrowException):
        return None
