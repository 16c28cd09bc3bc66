"""The suite's basic tests of snapshots. They update seeds, which are Parquet tables: here these are written anew."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic import test_snapshot_check_cols as check_cols
from dbt.tests.adapter.basic import test_snapshot_timestamp as timestamp
from dbt.tests.util import relation_from_name, run_sql_with_adapter


class TestSnapshotCheckCols(check_cols.BaseSnapshotCheckCols):
    @pytest.fixture(autouse=True)
    def updated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(check_cols, "update_rows", _update_rows)


class TestSnapshotTimestamp(timestamp.BaseSnapshotTimestamp):
    @pytest.fixture(autouse=True)
    def updated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(timestamp, "update_rows", _update_rows)


def _update_rows(adapter: Any, config: dict[str, Any]) -> None:
    """What the suite's function does by UPDATE."""
    column, clause = config["dst_col"], config["clause"]
    source = clause["src_col"]
    new = (
        f"{source} + interval 1 hour" if clause["type"] == "add_timestamp" else f"concat({source}, '{clause['value']}')"
    )
    table = relation_from_name(adapter, config["name"])
    kept, values = f"{table}_kept", f"* except ({column}), if({config['where']}, {new}, {column}) as {column}"
    run_sql_with_adapter(adapter, f"create table {kept} as select * from {table}")
    columns = [row[0] for row in run_sql_with_adapter(adapter, f"describe table {kept}", fetch="all")]
    run_sql_with_adapter(
        adapter, f"insert overwrite {table} select {', '.join(columns)} from (select {values} from {kept})"
    )
    run_sql_with_adapter(adapter, f"drop table {kept}")
