"""A collection that a test writes by itself, and its open table, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import DOUBLE, INTEGER, STRING, TIMESTAMP, from_json
from dbt_incremental_dd.open_table.keep import Kept, bring_up
from dbt_incremental_dd.open_table.registry import FORMATS
from dbt_incremental_dd.open_table.table import Table
from dbt_incremental_dd.relation.lazy_session import ANSI, TIME_ZONE, LazySession, SessionMemory, expected_settings
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow
from tests.open_table.readers import READERS, Rows, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = Schema(
    (
        Column("id", INTEGER),
        Column("name", STRING),
        Column("amount", from_json("decimal(8,2)")),
        Column("ratio", DOUBLE),
        Column("at", TIMESTAMP),
    )
)
RETAINED = 86_400_000


class _Known(SessionMemory):
    """Of a session with Spark's usual rules."""

    settings: Mapping[str, str] = expected_settings({TIME_ZONE: "UTC", ANSI: "false"})


def _never() -> SparkSession:
    raise AssertionError("a session is opened")


class Written:
    """``m.t``, whose table is brought up by ``show``."""

    def __init__(self, root: Path | str, format: str, options: Mapping[str, str] | None = None) -> None:
        self.format = format
        self.storage = Storage(str(root), dict(options or {}))
        self.place = self.storage.collection("m.t")
        self.stored = Schema((*_SCHEMA, TIME_COLUMN, DIFF_COLUMN))
        self.place.create(self.stored)
        self.time = 0
        self.known: tuple[int, int] | None = None
        """What the last run has noted of the table: its version, and up to when it has everything."""
        self.columns = _SCHEMA.names
        self.uri = self.place.table_uri

    @staticmethod
    def session() -> LazySession:
        """One that is known, and never opened."""
        return LazySession(_never, _Known())

    def commit(self, changes: list[tuple[tuple[Any, ...], int]], t: int) -> None:
        """Rows and their diffs at a time; it is final afterwards."""
        log, self.time = self.place.log(), t
        assert log is not None
        files = ()
        if changes:
            values = zip(*((*row, t, diff) for row, diff in changes), strict=True)
            kinds = [arrow_type(column.type) for column in self.stored]
            arrays = [pa.array(column, kind) for column, kind in zip(values, kinds, strict=True)]
            table = pa.table(arrays, names=list(self.stored.names))
            files = (write_arrow(self.storage, self.place.trace_uri, table, self.stored, ("id", "name")),)
        manifest = self.place.write_manifest(ModelManifest(schema=_SCHEMA))
        log.commit(Commit(add=files, upper=t + 1, manifest=manifest))

    def show(self) -> Kept:
        """As a run does it after its commit."""
        log = self.place.log()
        assert log is not None
        workspace = Workspace(self.session(), self.storage)
        try:
            table = Table("m.t", self.uri, FORMATS[self.format], _SCHEMA, (), RETAINED)
            kept = bring_up(workspace, table, log, self.known)
        finally:
            workspace.close()
        self.known = kept.version.number, log.frontiers.upper
        return kept

    def as_of(self, t: int) -> Rows:
        """The collection's rows."""
        found: Rows = Counter()
        for row in Collection(self.storage, "m.t").as_of(t).to_pylist():
            diff = row.pop(DIFF)
            found[tuple(map(plain, row.values()))] += diff
        return found

    def shown(self, version: int | None = None) -> Rows:
        """The table's, as a library that knows the format reads it."""
        return READERS[self.format](self.uri, self.columns, version, self.storage.options)
