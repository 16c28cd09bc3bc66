"""Records are updates: relations in which each one has a ``dd_diff`` of 1. Few of them are taken in on the driver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.relation.query import counted
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import read
from dbt_incremental_dd.relation.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE = "dd_file"
"""STRING, the path of the file that a record is from."""
CORRUPT = "dd_corrupt"
"""STRING, the text of a record that does not fit the schema; NULL for one that does."""
ORDER = "dd_order"
"""BIGINT, a record's place in its feed: of the new records of a key the last one counts."""
GONE = "dd_gone"
"""BOOLEAN, whether the record takes its key's row away; of such a record only the key's columns say anything."""
KEPT = "dd_kept"
"""STRING, places of columns, counted from 0, each between commas (``,0,3,``): their values are those of the stored row
with the key ``WAS``."""
WAS = "dd_was"
"""STRUCT of the key's columns."""
ADDED = (FILE, CORRUPT, ORDER, GONE, KEPT, WAS)
"""The columns that connectors may add to a source's own."""
_OWN = "dd_own_"


def on_driver(workspace: Workspace, table: pa.Table, schema: Schema) -> Relation:
    """Records that are on the driver, with the columns of ``schema``."""
    names = [column_of(name) for name in schema.names]
    columns = Schema(tuple(Column(name, column.type) for name, column in zip(names, schema, strict=True)))
    arrow = table.select(list(schema.names)).rename_columns(names)
    arrow = arrow.append_column(DIFF, pa.repeat(pa.scalar(1, pa.int64()), arrow.num_rows))
    return Relation.of(workspace, arrow, columns + Schema((DIFF_COLUMN,)), positive=True)


def in_spark(workspace: Workspace, frame: DataFrame, estimate: int) -> Relation:
    """Records in Spark, about so many at most."""
    return counted(workspace, frame.toDF(*map(column_of, frame.columns)), estimate)


def no_records(workspace: Workspace, schema: Schema) -> Relation:
    """None, with the columns of ``schema``."""
    return replace(read(workspace, "", (), schema + Schema((DIFF_COLUMN,)), most=0), positive=True)


def column_of(name: str) -> str:
    """What a column of records is called here: one of a changelog may be called ``dd_diff`` itself."""
    return f"{_OWN}{name}" if name.lower() == DIFF else name


def columns(records: Relation) -> Schema:
    """The columns of records by their own names, those that connectors add among them."""
    return Schema(tuple(replace(c, name=c.name.removeprefix(_OWN)) for c in records.schema if c.name != DIFF))


def own_columns(records: Relation) -> Schema:
    """The same without those that connectors add."""
    return Schema(tuple(column for column in columns(records) if column.name not in ADDED))


def taken_rows(workspace: Workspace) -> int:
    """Records of a source that are taken in on the driver at most."""
    return workspace.most(workspace.thresholds.taken_rows)


def is_many(rows: Relation) -> bool:
    """Whether there are certainly too many for the driver; of a file's size only a guess is known."""
    return rows.estimate > 2 * taken_rows(rows.workspace)


def localized(rows: Relation) -> Relation:
    """The same rows, computed and on the driver if they are few."""
    if is_many(rows):
        return rows
    most = taken_rows(rows.workspace)
    found = replace(rows, estimate=min(rows.estimate, most)).localized(most)
    return found if found.is_local else rows


def some(rows: Relation, count: int) -> pa.Table | None:
    """So many of the rows at most; None where the driver cannot hold them."""
    found = rows.first((), count).localized(count).table
    return None if found is None else found.arrow
