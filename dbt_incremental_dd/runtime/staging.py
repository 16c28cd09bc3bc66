"""A seed's table from rows that the driver computes. Where no session is open and only ours read the catalog, the next
one makes the table; else this one does, of the rows' file: dbt-spark's statement has each value as a literal.
"""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, DATE, DOUBLE, INTEGERS, STRING, TIMESTAMP, Decimal, Type
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.sql_types import sql_type, type_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.unopened import Unopened
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.staged_table import (
    LoadedTable,
    TableToMake,
    key_of,
    note_loaded_table,
    remove_others,
    store_rows,
)
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)
"""Tells at DEBUG why something is left to Spark."""
_STAGED = (*INTEGERS, BOOLEAN, STRING, DOUBLE, DATE, TIMESTAMP)
"""Types of columns that are computed here; and decimals."""
_USUAL = (
    ("spark.sql.sources.default", ("", "parquet")),
    ("spark.sql.legacy.createHiveTableByDefault", ("", "false")),
)
"""Settings by which a table is Parquet that is not said to be anything else."""
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""A name that every format takes, with quotes and without."""


@dataclass(frozen=True)
class SeedColumn:
    """A column of a seed: its name, also as SQL has it, its type in SQL, and texts that a CAST makes its values of."""

    name: str
    quoted: str
    type: str
    values: Sequence[str | None]


def can_wait(session: LazySession, relation: str) -> bool:
    """Whether the next session may make the table: only sessions of ours read the catalog, none is open, and the
    relation has a plain name and is certain not to be a view."""
    memory = session.memory
    if memory.due is None or session.is_open or any(memory.configured(name) not in usual for name, usual in _USUAL):
        return False
    if not _has_plain_name(relation):
        return False
    schema, _, name = key_of(relation).rpartition(".")
    return memory.relation_type(schema, name) in ("", "table") or memory.is_table(schema, name)


def _has_plain_name(relation: str) -> bool:
    """Whether it is a schema and a name that need no quotes."""
    schema, _, name = key_of(relation).rpartition(".")
    return bool(_NAME.fullmatch(schema) and _NAME.fullmatch(name))


def stage(
    session: LazySession, storage: Storage, relation: str, columns: Sequence[SeedColumn], *, create: str, mark: str
) -> bool:
    """Stores a seed's rows, and makes its table of them or leaves it to the next session; False where Spark has to
    compute them. Raises what Spark does.

    ``create``: the statement by which the table is made; ``mark``: tells apart what is loaded.
    """
    names = {column.name.lower() for column in columns}
    is_plain = len(names) == len(columns) and all(_NAME.fullmatch(name) for name in names)
    if not columns or not is_plain or not _has_plain_name(relation):
        return False
    if len(columns[0].values) > storage.thresholds.taken_rows:
        return False
    waits = can_wait(session, relation)
    if not waits:
        session.spark  # noqa: B018 - opened: its settings count
    try:
        rows, schema = _computed(session, storage, columns)
    except (NotExact, ValueError) as why:
        _LOG.debug("for Spark: %s", why)
        return False
    staged = store_rows(storage, relation, rows, schema)
    loaded = LoadedTable(mark, staged=staged, schema=schema.to_json(), rows=rows.num_rows)
    made = TableToMake(relation, create, loaded)
    if waits:
        _leave(session, storage, made)
    else:
        _make(session, storage, made)
    return True


def _leave(session: LazySession, storage: Storage, told: TableToMake) -> None:
    """To the next session."""
    due = session.memory.due
    assert due is not None and told.loaded.staged is not None
    due.keep_table(key_of(told.relation), told.note)
    remove_others(storage, told.relation, told.loaded.staged)
    if session.is_open:  # since it was asked
        session.settle()


def _make(session: LazySession, storage: Storage, told: TableToMake) -> None:
    """At once. The rows stay stored where runs without a session may read them."""
    spark, memory, name = session.spark, session.memory, key_of(told.relation)
    try:
        _make_table(spark, storage, told)
        if memory.follows_catalog:
            note_loaded_table(spark, storage, told.relation, told.loaded)
    finally:
        remove_others(storage, told.relation, (memory.due is not None and told.loaded.staged) or "")
    if memory.due is not None and name in memory.due.tables:  # it could not be made by then
        memory.due.drop_table(name, memory.due.tables[name])
    memory.keep_view(*name.rsplit(".", 1), is_there=False)


def _computed(session: LazySession, storage: Storage, columns: Sequence[SeedColumn]) -> tuple[pa.Table, Schema]:
    """The rows. Raises NotExact for what only Spark computes, ValueError for a type that only Spark may know."""
    types = [_type(column) for column in columns]
    names = [f"c{number}" for number in range(len(columns))]
    texts = {name: pa.array(column.values, pa.string()) for name, column in zip(names, columns, strict=True)}
    table = pa.table({**texts, DIFF: pa.repeat(pa.scalar(1, pa.int64()), len(columns[0].values))})
    schema = Schema((*(Column(name, STRING) for name in names), DIFF_COLUMN))
    casts = [(name, Expr(f"CAST({name} AS {sql_type(type)})")) for name, type in zip(names, types, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        scratch = Storage(folder, thresholds=storage.thresholds)
        workspace = Workspace(Unopened(session), scratch)
        found = Relation.of(workspace, table, schema, positive=True).map(casts).table
    if found is None:
        raise NotExact("rows that are in Spark")
    own = Schema(tuple(Column(column.name, type) for column, type in zip(columns, types, strict=True)))
    return found.arrow.select(names).rename_columns(own.names), own


def _type(column: SeedColumn) -> Type:
    type = type_of(column.type)
    if type not in _STAGED and not isinstance(type, Decimal):
        raise NotExact(f"a column of {column.type}")
    return type


def make_staged(spark: SparkSession, storage: Storage, note: str) -> None:
    """Makes the table that ``stage`` has left to this session. Raises what Spark does."""
    told = TableToMake.of(note)
    _make_table(spark, storage, told)
    note_loaded_table(spark, storage, told.relation, told.loaded)


def _make_table(spark: SparkSession, storage: Storage, told: TableToMake) -> None:
    relation, loaded = told.relation, told.loaded
    spark.sql(f"DROP TABLE IF EXISTS {relation}")
    spark.sql(told.create)
    if loaded.rows:
        rows = spark.read.schema(struct(loaded.columns)).parquet(spark_uri(f"{storage.root}/{loaded.staged}"))
        rows.write.insertInto(relation)
