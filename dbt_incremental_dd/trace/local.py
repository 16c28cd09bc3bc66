"""Reading a trace on the driver, without a Spark job: for the few rows that a small delta touches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.layout import Storage

_PLAIN = ("byte", "short", "integer", "long", "string", "boolean", "date", "binary")


def is_plain(schema: Schema) -> bool:
    """Whether Arrow and Spark agree on the types, and on which of their values are equal."""
    return all(column.type in _PLAIN or column.type.startswith("decimal") for column in schema)


def read_local(
    storage: Storage,
    uri: str,
    files: Sequence[DataFile],
    schema: Schema,
    keys: Mapping[str, Sequence[Any]] | None = None,
) -> pa.Table:
    """The files' rows with the columns of ``schema``; a column that a file lacks is NULL.

    ``keys`` leaves out rows with other values of these columns; row groups without any are not read.
    """
    filesystem, root = storage.filesystem(uri)
    filters = [(name, "in", list(values)) for name, values in (keys or {}).items()] or None
    tables = []
    for file in files:
        path = f"{root}/{file.path}"
        present = set(pq.read_schema(path, filesystem=filesystem).names)
        wanted = [name for name in schema.names if name in present]
        table = pq.read_table(path, columns=wanted, filesystem=filesystem, filters=filters)
        for name in schema.names:
            if name not in present:
                table = table.append_column(name, pa.nulls(table.num_rows))
        tables.append(table.select(list(schema.names)))
    return pa.concat_tables(tables, promote_options="permissive")


def consolidate_local(table: pa.Table, diffs: Sequence[str]) -> pa.Table:
    """Sums the diffs of equal rows and drops rows whose diffs are all zero; NULL equals NULL."""
    data = [name for name in table.column_names if name not in diffs]
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
