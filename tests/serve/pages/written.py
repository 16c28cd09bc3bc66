"""A collection of any columns that a test writes by itself, without Spark."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.manifest import Manifest, ModelManifest, RecordedChange, SourceManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import parse
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow

Row = tuple[Any, ...]


class Written:
    """``columns``: Spark's type of each. ``rows`` is what it holds, as often as it is held."""

    def __init__(
        self,
        root: Path,
        name: str,
        columns: Mapping[str, str],
        kind: str = "model",
        inputs: Iterable[str] = (),
        target_lag: int | str | None = None,
    ) -> None:
        self.name, self.kind, self.inputs = name, kind, tuple(inputs)
        self.target_lag = target_lag
        self.rows: Counter[Row] = Counter()
        self.schema = Schema(tuple(Column(column, parse(dtype)) for column, dtype in columns.items()))
        self.place = Storage(str(root)).collection(name)
        self.place.create(Schema((*self.schema.columns, TIME_COLUMN, DIFF_COLUMN)))
        self.at = 0

    def become(self, rows: Iterable[Row], at: int | None = None) -> int:
        """The rows that it has from ``at`` on (default: by the clock); returns when that is."""
        wanted = Counter(rows)
        changes = {row: wanted[row] - self.rows[row] for row in {**self.rows, **wanted}}
        self.rows = wanted
        return self._commit({row: diff for row, diff in changes.items() if diff}, at)

    def change(self, changes: Mapping[Row, int], at: int | None = None) -> int:
        """The same by how often each row comes or goes."""
        for row, diff in changes.items():
            self.rows[row] += diff
        self.rows = +self.rows
        return self._commit(changes, at)

    def forget(self, since: int) -> None:
        """History below is let go."""
        log = self.place.log()
        assert log is not None
        log.commit(Commit(since=since))

    def _commit(self, changes: Mapping[Row, int], at: int | None) -> int:
        log = self.place.log()
        assert log is not None
        is_first, self.at = not self.at, at or max(self.at + 1, int(time.time() * 1000))
        updates = [(*row, self.at, diff) for row, diff in changes.items()]
        kinds = [arrow_type(column.type) for column in log.schema]
        arrays = [pa.array([update[i] for update in updates], kind) for i, kind in enumerate(kinds)]
        table = pa.table(arrays, names=list(log.schema.names))
        files = (write_arrow(self.place.storage, self.place.trace_uri, table, log.schema),) if updates else ()
        manifest = self.place.write_manifest(self._manifest(changes))
        log.commit(Commit(add=files, upper=self.at + 1, since=self.at if is_first else None, manifest=manifest))
        return self.at

    def _manifest(self, changes: Mapping[Row, int]) -> Manifest:
        added = sum(diff for diff in changes.values() if diff > 0)
        removed = -sum(diff for diff in changes.values() if diff < 0)
        rows, change = self.rows.total(), RecordedChange("delta", added, added, removed, 0.2)
        if self.kind == "source":
            return SourceManifest(schema=self.schema, rows=rows, change=change)
        inputs = {f"input.{name}": name for name in self.inputs}
        return ModelManifest(schema=self.schema, rows=rows, change=change, inputs=inputs, target_lag=self.target_lag)
