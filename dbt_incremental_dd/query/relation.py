"""A collection's contents as of a time, as a SELECT over its files.

Conditions on columns are pushed down to the files' statistics, so that few row groups are read for few rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.duck.sql import duckdb_type, identifier, literal
from dbt_incremental_dd.trace.damage import require_readable
from dbt_incremental_dd.trace.log import Log


def contents_sql(log: Log, schema: Schema, t: Time, root: str) -> str:
    """Each row as often as the collection has it as of ``t``, with the columns of ``schema``. ``root``: the path below
    which DuckDB finds the log's files."""
    files = log.summands(t)
    if not files:
        return empty_sql(schema)
    require_readable(log, files)
    names = ", ".join(identifier(name) for name in schema.names)
    inside = f"FROM ({_updates_sql(root, files, schema)}) WHERE {TIME} <= {t}"
    if all(file.min_diff == 1 == file.max_diff for file in files):
        return f"SELECT {names} {inside}"
    if all(file.inserts_only for file in files):
        summed = f"SELECT {names}, {DIFF} AS dd_count {inside}"
    else:
        summed = f"SELECT {names}, sum({DIFF})::BIGINT AS dd_count {inside} GROUP BY {names} HAVING sum({DIFF}) > 0"
    return f"SELECT {names} FROM ({summed}) AS held, LATERAL (SELECT unnest(range(held.dd_count)))"


def _updates_sql(root: str, files: Sequence[DataFile], schema: Schema) -> str:
    """All updates of the files. A column that a file lacks is NULL."""
    stored = Schema((*schema.columns, TIME_COLUMN, DIFF_COLUMN))
    paths = ", ".join(literal(f"{root}/{file.path}") for file in files)
    found = f"SELECT * FROM read_parquet([{paths}], union_by_name = true)"
    columns = ", ".join(f"{identifier(c.name)}::{duckdb_type(c.type)} AS {identifier(c.name)}" for c in stored)
    return f"SELECT {columns} FROM ({empty_sql(stored)} UNION ALL BY NAME {found})"


def empty_sql(schema: Schema) -> str:
    """A SELECT of these columns that returns no rows."""
    columns = ", ".join(f"NULL::{duckdb_type(c.type)} AS {identifier(c.name)}" for c in schema)
    return f"SELECT {columns} WHERE false"


def rows_sql(contents: str, condition: str) -> str:
    """The rows of a SELECT that a condition selects, which cannot fail. What a statement asks of them is computed above
    the limit, which excludes no row and which DuckDB moves no condition across: an error in a cast would tell of rows
    that are left out."""
    return f"SELECT * FROM ({contents}) AS held WHERE {condition} LIMIT {_ALL_ROWS}"


_ALL_ROWS = (1 << 62) - 4
"""DuckDB's limits are below 2^62."""
