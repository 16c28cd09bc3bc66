"""Adds up the updates of files on the driver, without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import TIME, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.duck.connections import database, error
from dbt_incremental_dd.trace.arrow import file_type
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import total_rows

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

    Rows are equal as in GROUP BY: NULL equals NULL, NaN equals NaN, 0.0 equals -0.0. None where Spark has to do it: too
    many rows or bytes, types that the driver does not read, sums that do not fit. Raises OSError for a file that is not
    as it was written.
    """
    types = [file_type(column.type) for column in schema]
    is_large = total_rows(files) > storage.thresholds.local_rows or sum(file.bytes for file in files) > _BYTES
    if is_large or None in types:
        return None
    updates = read_files(storage, uri, files, schema)
    order = [*sort_by, *(name for name in (TIME,) if name not in sort_by)]
    try:
        with database() as connection:
            connection.register("updates", updates.rename_columns(list(map(_alias, range(len(types))))))
            found = connection.sql(_query(schema.names, since, diffs, order)).to_arrow_table()
        return found.rename_columns(list(schema.names)).cast(updates.schema)
    except (error(), pa.ArrowException):  # such as sums that do not fit
        return None


def _alias(index: int) -> str:
    """Names without regard to which differ in case only, and are two columns here."""
    return f"c{index}"


def _query(names: Sequence[str], since: Time, diffs: Sequence[str], order: Sequence[str]) -> str:
    aliases = {name: _alias(index) for index, name in enumerate(names)}
    data = {name: aliases[name] for name in names if name not in diffs}
    values = {name: f"greatest({alias}, {since})" if name == TIME else alias for name, alias in data.items()}
    values |= {name: f"sum({aliases[name]})" for name in diffs}
    selected = ", ".join(f"{values[name]} AS {aliases[name]}" for name in names)
    grouped = ", ".join(values[name] for name in data)
    kept = " OR ".join(f"sum({aliases[name]}) <> 0" for name in diffs)
    ordered = ", ".join(f"{values[name]} NULLS FIRST" for name in order)
    return f"SELECT {selected} FROM updates GROUP BY {grouped} HAVING {kept} ORDER BY {ordered}"
