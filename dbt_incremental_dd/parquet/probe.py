"""Finding the few rows of some keys among many: files filtered on the driver, by a reader that filters first.

Arrow reads every wanted column of a row group before it looks at the keys; DuckDB reads the keys, and of the other
columns only what they select. Values are the same; what it might read otherwise is left to Arrow.
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
    filesystem: pafs.FileSystem, paths: Sequence[str], columns: pa.Schema, keys: Mapping[str, Sequence[Any]]
) -> pa.Table | None:
    """The rows of Parquet files whose columns have one of the values each; None if Arrow has to read them.

    Raises OSError for a file that is not what was written, as far as ``require_intact`` looks."""
    if not isinstance(filesystem, pafs.LocalFileSystem) or not keys or _GLOB & set("".join(paths)):
        return None
    require_intact(paths)
    try:
        return _found(paths, columns, keys)
    except (error(), pa.ArrowException):  # a column that no file has, bytes that are no text
        return None


def _found(paths: Sequence[str], columns: pa.Schema, keys: Mapping[str, Sequence[Any]]) -> pa.Table:
    with database() as connection:
        for i, (name, values) in enumerate(keys.items()):
            connection.register(f"keys{i}", pa.table({"value": pa.array(values, columns.field(name).type)}))
        wanted = ", ".join(_quoted(name) for name in columns.names)
        among = (f"{_quoted(name)} IN (SELECT value FROM keys{i})" for i, name in enumerate(keys))
        sql = f"SELECT {wanted} FROM read_parquet($paths, union_by_name = true) WHERE {' AND '.join(among)}"
        return connection.sql(sql, params={"paths": list(paths)}).to_arrow_table().cast(columns)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
