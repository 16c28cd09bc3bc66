"""Relations from files and into files: what is small is read and written on the driver, without a Spark job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.reads import count as note_read
from dbt_incremental_dd.core.schema import TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.room import files_bytes, room
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.arrow import among, arrow_type, is_readable
from dbt_incremental_dd.trace.driver_reader import TooLarge, find_rows, pages_with, read_files, searched_rows
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.found_rows import Read
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.spark_reader import quote_name, quoted, updates
from dbt_incremental_dd.trace.write import ROWS_PER_FILE, ROWS_PER_GROUP, write_arrow, write_spark


def read(
    workspace: Workspace,
    uri: str,
    files: Sequence[DataFile],
    schema: Schema,
    *,
    most: int,
    values: Mapping[str, Sequence[Any]] | None = None,
) -> Relation:
    """The files' updates, with the columns of ``schema``; a column that a file lacks is NULL.

    At most so many stored rows are read on the driver, as far as there is room for them. ``values``: rows with other
    ones of these columns may be left out. Raises OSError for a file that is not what was written.
    """
    count = total_rows(files)
    if is_readable(schema) and (count <= most or _are_few(workspace, uri, files, schema, most, values or {})):
        with suppress(TooLarge):
            rows = read_files(workspace.storage, uri, files, schema, values, most_bytes=room())
            return Relation.of(workspace, rows, schema)
    note_read(count, 0 if values else count, sum(file.bytes for file in files))
    frame = updates(workspace.spark, uri, files, schema)
    for name, wanted in (values or {}).items():
        column = quoted(name)
        if not wanted:
            frame = frame.limit(0)
        elif len(wanted) <= _LITERALS:
            frame = frame.where(column.isin(list(wanted)))
        else:
            frame = frame.where(column.between(wanted[0], wanted[-1]))
    return Relation(workspace, frame, count)


def most_of(workspace: Workspace, files: Sequence[DataFile], schema: Schema) -> int:
    """How many stored rows to read on the driver, where all of these files' are wanted in columns of ``schema``."""
    has_room = files_bytes(files, schema) <= room()
    return max(workspace.thresholds.found_rows, workspace.thresholds.built_rows if has_room else 0)


def _are_few(
    workspace: Workspace,
    uri: str,
    files: Sequence[DataFile],
    schema: Schema,
    most: int,
    values: Mapping[str, Sequence[Any]],
) -> bool:
    """Whether no more rows than ``most``, which is not 0, are looked through for the values."""
    return bool(most and values) and searched_rows(workspace.storage, uri, files, schema, values) <= most


class StoredFiles(Protocol):
    """Files with the columns of ``schema`` below ``uri``: a log's, or those of another table."""

    @property
    def uri(self) -> str:
        """The folder of all of them."""
        ...

    @property
    def schema(self) -> Schema:
        """What is stored."""
        ...

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All of them."""
        ...


def with_keys(workspace: Workspace, log: StoredFiles, schema: Schema, keys: Keys) -> Relation:
    """The log's updates, with the columns of ``schema``, whose values are among the keys.

    They are found on the driver where the keys are there, and are values that files have bounds for. What was stored
    with columns of other types is Spark's to read.
    """
    files = matching(log.files, keys.values)
    found = None
    is_found = keys.is_local and bool(keys.values) and all(log.schema.find(column.name) == column for column in schema)
    if is_found and all(arrow_type(column.type) is not None for column in schema):
        has_times = log.schema.find(TIME) is not None and schema.find(TIME) is None
        timed = Schema((*schema, TIME_COLUMN)) if has_times else schema
        found = found_by_keys(workspace, log, log.files, timed, keys.values)
    if found is not None:
        return keys.restricted(Relation.of(workspace, found.select(list(schema.names)), schema))
    note_read(total_rows(files), 0, sum(file.bytes for file in files))
    return keys.restricted(Relation(workspace, updates(workspace.spark, log.uri, files, schema), total_rows(files)))


def found_by_keys(
    workspace: Workspace,
    log: StoredFiles,
    files: Sequence[DataFile],
    schema: Schema,
    keys: Mapping[str, Sequence[Any]],
    read: Read | None = None,
) -> pa.Table | None:
    """The files' rows that have one of the sorted values in each column, on the driver; None where they are too many
    to search or to return. What the run has found before is not looked for again.

    ``read``: looks for those that are new, in place of ``find_rows``.
    """
    read = read or partial(find_rows, workspace.storage, log.uri)
    for name, values in keys.items():
        if len(keys) == 1 or _is_enough(workspace, log, files, schema, name, values):
            found = workspace.found.rows(log.uri, name, values, files, schema, read)
            if found is not None:
                return among(found, {other: keys[other] for other in keys if other != name})
    return read(files, schema, keys) if len(keys) > 1 else None


def _is_enough(
    workspace: Workspace,
    log: StoredFiles,
    files: Sequence[DataFile],
    schema: Schema,
    column: str,
    values: Sequence[Any],
) -> bool:
    """Whether to look for one of several columns' values alone: the rows are there, or in the same few pages."""
    known = workspace.found.knows(log.uri, column, values, files, schema)
    return known or is_in_few_pages(workspace, log, files, schema, column, values)


def is_in_few_pages(
    workspace: Workspace,
    log: StoredFiles,
    files: Sequence[DataFile],
    schema: Schema,
    column: str,
    values: Sequence[Any],
) -> bool:
    """Whether the rows of each value are side by side in the large ones of the files, as far as their pages tell."""
    large = [file for file in matching(files, {column: values}) if file.rows > ROWS_PER_GROUP]
    pages = pages_with(workspace.storage, log.uri, large, schema.select((column,)).columns[0], values)
    return pages is not None and pages <= len(large) + _PAGES_PER_KEY * len(values)


_PAGES_PER_KEY = 2
"""That hold it and others, if it is of few rows."""


_LITERALS = 32
"""Values that a filter names one by one, so that readers skip row groups; of more it names the bounds."""


def in_interval(rows: Relation, files: Iterable[DataFile], after: Time, up_to: Time) -> Relation:
    """The updates with ``after < dd_time <= up_to``; a comparison that no file needs is left out."""
    files = tuple(files)
    conditions = []
    if after > BEGINNING and any(file.first <= after for file in files):
        conditions.append(f"{TIME} > {after}L")
    if any(file.last > up_to for file in files):
        conditions.append(f"{TIME} <= {up_to}L")
    return rows.filter(Expr(" AND ".join(conditions))) if conditions else rows


def write(
    rows: Relation,
    uri: str,
    stored: Schema,
    t: Time | None,
    *,
    bounded: Sequence[str],
    sort_by: Sequence[str] = (),
    by_ranges: bool = True,
    retracts_all: bool = False,
) -> tuple[DataFile, ...]:
    """The rows as files of a trace with the columns of ``stored``, stamped ``t``, sorted by ``sort_by``.

    ``t`` None: the rows have times of their own. ``by_ranges``: Spark's files are of disjoint ranges of these; else
    each is sorted by itself. ``retracts_all``: as in DataFile; of rows on the driver. Nothing is visible before a
    commit names the files.
    """
    storage = rows.workspace.storage
    if rows.table is not None:
        table = rows.table.arrow
        if not table.num_rows:
            return ()
        table = table.sort_by([(name, "ascending") for name in sort_by]) if sort_by else table
        if t is not None:
            table = table.append_column(TIME, pa.repeat(pa.scalar(t, pa.int64()), table.num_rows))
        table = table.select(list(stored.names))
        parts = (table.slice(at, ROWS_PER_FILE) for at in range(0, table.num_rows, ROWS_PER_FILE))
        return tuple(write_arrow(storage, uri, part, stored, bounded, retracts_all=retracts_all) for part in parts)
    at = quote_name(TIME) if t is None else f"{t}L AS {TIME}"
    frame = rows.frame.selectExpr(*(at if name == TIME else quote_name(name) for name in stored.names))
    if sort_by:
        frame = frame.repartitionByRange(*map(quoted, sort_by)) if by_ranges else frame
        frame = frame.sortWithinPartitions(*map(quoted, sort_by))
    return write_spark(storage, uri, frame, bounded, is_arranged=bool(sort_by) or not by_ranges)
