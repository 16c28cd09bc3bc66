"""Tables on the driver, for the few rows that a small delta touches: read, summed, looked up without a Spark job."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import PARQUET, file_type, typed
from dbt_incremental_dd.trace.checksum import require_intact
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.object_store import is_remote
from dbt_incremental_dd.trace.page_probe import probe_pages
from dbt_incremental_dd.trace.probe import probe
from dbt_incremental_dd.trace.read import no_rows, quoted, schema_of, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_LOG = logging.getLogger(__name__)
"""Tells each read at DEBUG, with the files' ``paths``, the ``columns`` and the ``wanted`` keys."""


class Local:
    """A table on the driver, and its Spark form, which is made when it is first asked for."""

    def __init__(self, spark: SparkSession, table: pa.Table, schema: Schema) -> None:
        self.spark = spark
        self.schema = schema
        self.table = typed(table, schema)

    @cached_property
    def frame(self) -> DataFrame:
        """The rows in Spark."""
        return local_frame(self.spark, self.table, struct(self.schema))

    def with_table(self, table: pa.Table) -> Local:
        """Other rows with the same columns."""
        return Local(self.spark, table, self.schema)


def if_few(spark: SparkSession, frame: DataFrame, limit: int) -> Local | None:
    """The frame's rows, computed and brought to the driver; None where there are more than ``limit``, or more bytes
    than the session lets a driver have."""
    try:
        table = frame.limit(limit + 1).toArrow()
    except Exception as error:
        if "maxResultSize" in str(error):
            return None
        raise
    return Local(spark, table, schema_of(frame.schema)) if table.num_rows <= limit else None


def read_local(
    storage: Storage,
    uri: str,
    files: Sequence[DataFile],
    schema: Schema,
    keys: Mapping[str, Sequence[Any]] | None = None,
) -> pa.Table:
    """The files' rows with the columns of ``schema``, of readable types; a column that a file lacks is NULL.

    ``keys`` leaves out rows with other values of these columns; row groups without any are not read. Raises OSError for
    a file that is not what was written, as far as ``require_intact`` looks.
    """
    filesystem, root = storage.filesystem(uri)
    columns = pa.schema([(column.name, file_type(column.type)) for column in schema])
    paths = [f"{root}/{file.path}" for file in files]
    tables, paths = probe_pages(filesystem, paths, columns, keys or {})
    if paths or not tables:
        told = {"paths": paths, "columns": columns.names, "wanted": keys or {}}
        _LOG.debug("reading %d files", len(paths), extra=told)
        found = probe(filesystem, paths, columns, keys or {}) if paths else columns.empty_table()
        if found is None:
            require_intact(() if is_remote(uri) else paths)
            dataset = ds.dataset(paths, schema=columns, format=PARQUET, filesystem=filesystem)
            found = dataset.to_table(filter=_filters(keys or {}))
        tables.append(found)
    return pa.concat_tables(tables)


def find_local(
    storage: Storage, uri: str, files: Sequence[DataFile], schema: Schema, keys: Mapping[str, Sequence[Any]]
) -> pa.Table | None:
    """What ``read_local`` reads of the keys; None where that is too much to look through or to hold."""
    if total_rows(files) > limits.PROBED_ROWS or sum(file.bytes for file in files) > limits.PROBED_BYTES:
        return None
    table = read_local(storage, uri, files, schema, keys)
    return table if table.num_rows <= limits.FOUND_ROWS else None


def _filters(keys: Mapping[str, Sequence[Any]]) -> pc.Expression | None:
    """The keys as a condition; the bounds of each column's sorted values are what row groups are skipped by."""
    found = None
    for name, values in keys.items():
        column = pc.field(name)
        part = pc.scalar(False)
        if values:
            part = (column >= values[0]) & (column <= values[-1]) & column.isin(list(values))
        found = part if found is None else found & part
    return found


def lookup_local(table: pa.Table, other: pa.Table, keys: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """For each row of ``table``, ``columns`` of the row of ``other`` with the same keys; NULLs where there is none.

    ``other`` has each key at most once; NULL equals NULL.
    """
    wanted, known = _codes(table, other, keys)
    return other.select(list(columns)).take(pc.index_in(wanted, value_set=known))


def _codes(table: pa.Table, other: pa.Table, columns: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """A number for each row of either table; rows have the same one if they are equal in ``columns``."""
    sizes = (table.num_rows, other.num_rows)
    codes = tuple(pa.repeat(pa.scalar(0, pa.int64()), size) for size in sizes)
    for name in columns:
        pair = tuple(part[name].combine_chunks() for part in (table, other))
        values = pc.unique(pa.chunked_array(pair))
        places = (pc.index_in(part, value_set=values).cast(pa.int64()) for part in pair)
        both = [pc.add(pc.multiply(code, len(values)), place) for code, place in zip(codes, places, strict=True)]
        dense = pc.unique(pa.chunked_array(both))
        codes = tuple(pc.index_in(code, value_set=dense).cast(pa.int64()) for code in both)
    return codes[0], codes[1]


def group_numbers(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The number of each row's group: rows that are equal in ``columns``, in the order in which they first come."""
    return _codes(table, table.slice(0, 0), columns)[0]


def member_mask(table: pa.Table, keys: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """For each row, whether ``keys`` has a row with the same ``columns``; NULL equals NULL."""
    if len(columns) == 1:
        return pc.is_in(table[columns[0]], value_set=keys[columns[0]].combine_chunks())
    rows, wanted = _codes(table, keys, columns)
    return pa.chunked_array([pc.is_in(rows, value_set=wanted)])


def consolidate_local(table: pa.Table, diffs: Sequence[str]) -> pa.Table:
    """Sums the diffs of equal rows and drops rows whose diffs are all zero; NULL equals NULL.

    Of flat types. As with Spark, NaN equals NaN, and -0.0 becomes 0.0.
    """
    data = [name for name in table.column_names if name not in diffs]
    table = _normalized(table)
    types = {name: table.schema.field(name).type for name in diffs}
    if data:
        summed = table.group_by(data, use_threads=False).aggregate([(name, "sum") for name in diffs])
        summed = summed.rename_columns([n.removesuffix("_sum") if n not in data else n for n in summed.column_names])
    else:
        totals = {name: pa.array([pc.sum(table[name]).as_py() or 0], types[name]) for name in diffs}
        summed = pa.table(totals)
    columns = [summed[name].cast(types[name]) if name in types else summed[name] for name in table.column_names]
    summed = pa.table(dict(zip(table.column_names, columns, strict=True)))
    kept = None
    for name in diffs:
        nonzero = pc.not_equal(summed[name], pa.scalar(0).cast(types[name]))
        kept = nonzero if kept is None else pc.or_(kept, nonzero)
    return summed if kept is None else summed.filter(kept)


def _normalized(table: pa.Table) -> pa.Table:
    """The table with one NaN and one zero only, because Arrow groups floats by their bits."""
    for index, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            values = pc.add(table.column(index), pa.scalar(0.0, field.type))
            one_nan = pc.if_else(pc.is_nan(values), pa.scalar(math.nan, field.type), values)
            table = table.set_column(index, field.name, one_nan)
    return table


def local_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """A DataFrame of a driver-side table, with exactly the types of ``schema``, in one partition.

    What is computed of one partition needs no exchange. The chunks are joined first, because Spark stops reading an
    Arrow table at an empty chunk, without an error.
    """
    if table.num_rows == 0:
        return no_rows(spark, schema)
    made = spark.createDataFrame(table.combine_chunks()).coalesce(1)
    if [f.dataType for f in made.schema] == [f.dataType for f in schema]:
        return made
    return made.select(*(quoted(f.name).cast(f.dataType).alias(f.name) for f in schema))
