"""A collection that a test writes by itself, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow

Rows = Counter[tuple[int, str | None]]

_VISIBLE = Schema((Column("k", LONG), Column("v", STRING)))


class Stored:
    """``m.kept``, or one of another name, with columns ``k`` and ``v``."""

    def __init__(self, root: Path | str, options: Mapping[str, str] | None = None, name: str = "m.kept") -> None:
        self.place = Storage(str(root), options or {}).collection(name)
        self.place.create(Schema((*_VISIBLE.columns, TIME_COLUMN, DIFF_COLUMN)))
        self.collection = Collection(self.place.storage, name)

    def commit(self, changes: dict[int, Rows], upper: int) -> None:
        """Changes by their times, all below ``upper``."""
        log = self.place.log()
        assert log is not None
        updates = [(*row, t, diff) for t, rows in sorted(changes.items()) for row, diff in rows.items() if diff]
        columns = [pa.int64(), pa.string(), pa.int64(), pa.int64()]
        arrays = [pa.array([update[i] for update in updates], kind) for i, kind in enumerate(columns)]
        table = pa.table(arrays, names=["k", "v", "dd_time", "dd_diff"])
        files = (write_arrow(self.place.storage, self.place.trace_uri, table, log.schema),) if updates else ()
        manifest = self.place.write_manifest(ModelManifest(schema=_VISIBLE))
        log.commit(Commit(add=files, upper=upper, manifest=manifest))

    def forget(self, since: int) -> None:
        """History below is let go."""
        log = self.place.log()
        assert log is not None
        log.commit(Commit(since=since))


def rows_of(table: pa.Table) -> Rows:
    """A table's rows by their diffs."""
    found: Rows = Counter()
    for row in table.to_pylist():
        found[row["k"], row["v"]] += row["dd_diff"]
    return +found
