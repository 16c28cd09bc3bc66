"""Finds few rows by their keys among many on the driver.

Arrow reads every requested column of a row group before it filters; DuckDB reads the key columns first, and of the
others only the matching rows. The values are the same; files that DuckDB might read differently are left to Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import fs as pafs

from dbt_incremental_dd.duck.connections import database, error
from dbt_incremental_dd.parquet.checksum import require_intact

_GLOB = frozenset("*?[]{}\\")


def probe(
    filesystem: pafs.FileSystem,
    paths: Sequence[str],
    columns: pa.Schema,
    keys: Mapping[str, Sequence[Any]],
    together: pa.Table | None = None,
) -> pa.Table | None:
    """The rows of Parquet files in which each key column has one of its values; None if Arrow has to read the files.

    ``together``: of these, only the rows in which the columns have their values as one of its rows has them.
    Raises OSError for a file that is not as it was written, as far as ``require_intact`` checks.
    """
    if not isinstance(filesystem, pafs.LocalFileSystem) or not keys or _GLOB & set("".join(paths)):
        return None
    require_intact(paths)
    try:
        return _query(paths, columns, keys, together)
    except (error(), pa.ArrowException):  # a column that no file has, or bytes that are no UTF-8
        return None


def _query(
    paths: Sequence[str], columns: pa.Schema, keys: Mapping[str, Sequence[Any]], together: pa.Table | None
) -> pa.Table:
    with database() as connection:
        for i, (name, values) in enumerate(keys.items()):
            connection.register(f"keys{i}", pa.table({"value": pa.array(values, columns.field(name).type)}))
        selected = ", ".join(_quoted(name) for name in columns.names)
        among = (f"{_quoted(name)} IN (SELECT value FROM keys{i})" for i, name in enumerate(keys))
        sql = f"SELECT {selected} FROM read_parquet($paths, union_by_name = true) WHERE {' AND '.join(among)}"
        if together is not None:
            connection.register("together", together)
            named = ", ".join(_quoted(name) for name in together.column_names)
            sql += f" AND ({named}) IN (SELECT {named} FROM together)"
        return connection.sql(sql, params={"paths": list(paths)}).to_arrow_table().cast(columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
