"""Updates and contents as Arrow tables, read without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import Schema as DeltaSchema

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.trace.arrow import nullable, parquet_dataset
from dbt_incremental_dd.trace.columns import columns_of
from dbt_incremental_dd.trace.damage import damaged, require_readable
from dbt_incremental_dd.trace.data_folder import data_folder
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.sums import sums


def log_of(place: CollectionStore) -> Log:
    """The log of a stored collection. Raises StateError if there is none."""
    log = place.log()
    if log is None:
        raise StateError(f"{place.name} is gone from {place.storage.root}", "Run `dbt run` to build it again.")
    return log


def changes(place: CollectionStore, after: Time, up_to: Time) -> pa.Table:
    """A collection's updates with ``after < dd_time <= up_to``, by time: visible columns, dd_time, dd_diff. No two that
    cancel out. Raises FrontierError if one of the times is not readable."""
    log = log_of(place)
    log.frontiers.require(up_to, place.name)
    if after != BEGINNING:
        log.frontiers.require(after, place.name)
    files = between(log.files, after, up_to)
    found = _updates(place, log, files, after, up_to)
    times = [file.first for file in files if file.retracts_all]
    if not times:
        return found
    is_replaced = pc.is_in(found[TIME], pa.array(times, pa.int64()))
    summed = _nonzero(found.filter(is_replaced)).select(found.column_names)
    return pa.concat_tables([found.filter(pc.invert(is_replaced)), summed]).sort_by(TIME)


def contents(place: CollectionStore, t: Time) -> pa.Table:
    """A collection's contents as of ``t``: visible columns, and each row's count in dd_diff. Raises FrontierError if
    ``t`` is not readable."""
    log = log_of(place)
    log.frontiers.require(t, place.name)
    return summed(_updates(place, log, log.summands(t), BEGINNING, t))


def updates_schema(place: CollectionStore) -> pa.Schema:
    """The columns of a collection's updates."""
    return _updates_schema(place, log_of(place))


def _updates_schema(place: CollectionStore, log: Log) -> pa.Schema:
    return stored_types(Schema((*columns_of(place, log).columns, TIME_COLUMN, DIFF_COLUMN)))


def _updates(place: CollectionStore, log: Log, files: tuple[DataFile, ...], after: Time, up_to: Time) -> pa.Table:
    """The files' updates in the interval. A column that a file lacks is NULL."""
    filesystem, root = data_folder(place.storage, log.uri, files)
    columns = _updates_schema(place, log)
    inside = (pc.field(TIME) > after) & (pc.field(TIME) <= up_to)
    tables = []
    require_readable(log, files)
    for file in files:
        # Files are read in their own types first: Arrow does not cast nested types while it reads.
        try:
            stored = parquet_dataset(f"{root}/{file.path}", filesystem)
            present = [name for name in columns.names if name in stored.schema.names]
            found = stored.to_table(columns=present, filter=inside)
        except (OSError, pa.ArrowException) as error:
            raise damaged(place.name, log.uri, error, f"{root}/{file.path}") from error
        tables.append(_cast(found, columns))
    return pa.concat_tables([columns.empty_table(), *tables]).sort_by(TIME)


def summed(updates: pa.Table) -> pa.Table:
    """Each distinct row once, with its count in dd_diff, if that is above 0."""
    found = _sums(updates.drop_columns([TIME]))
    return found.filter(pc.greater(found[DIFF], 0))


def consolidated(updates: pa.Table) -> pa.Table:
    """Each distinct row once, with the sum of its diffs in dd_diff, if that is not 0."""
    return _nonzero(updates.drop_columns([TIME]))


def _nonzero(updates: pa.Table) -> pa.Table:
    found = _sums(updates)
    return found.filter(pc.not_equal(found[DIFF], 0))


def _sums(updates: pa.Table) -> pa.Table:
    names = [name for name in updates.column_names if name != DIFF]
    if any(pa.types.is_nested(updates.schema.field(name).type) for name in names):
        return sums(updates, (DIFF,))  # which Arrow cannot group by
    found = updates.group_by(names, use_threads=False).aggregate([(DIFF, "sum")])
    return found.rename_columns([*names, DIFF])


def stored_types(schema: Schema) -> pa.Schema:
    """The columns in Arrow's types, nested ones included."""
    found = pa.schema(DeltaSchema.from_json(schema.to_json()).to_arrow())
    return pa.schema([(field.name, nullable(field.type)) for field in found])


def _cast(table: pa.Table, columns: pa.Schema) -> pa.Table:
    """The table with these columns and types; missing columns are NULL."""
    arrays = [
        _zeros(table[field.name].cast(field.type))
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in columns
    ]
    return pa.table(arrays, columns)


def _zeros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with -0.0 replaced by 0.0: the two are equal in Spark, so that an update may retract one as the
    other."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column
