"""dbt's snapshots as they are kept here, beside dbt-spark's own of the same rows, which are Delta tables."""

from __future__ import annotations

import random
from bisect import bisect
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.dbt.project import Project
from tests.lake.conftest import VERSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lake, pytest.mark.skipif(VERSION == "4.1", reason="Delta is tested with Spark 4.2")]

_KINDS = {
    "by_time": ("once", "strategy: timestamp, updated_at: changed, hard_deletes: invalidate"),
    "ignoring": ("t", "strategy: timestamp, updated_at: changed"),
    "by_check": ("t", "strategy: check, check_cols: [name], hard_deletes: invalidate"),
    "until": ("t", "strategy: check, check_cols: all, dbt_valid_to_current: \"to_timestamp('9999-12-31')\""),
}
"""What each reads, and its config. In ``once`` no key comes back: dbt-spark then lets its versions overlap. Of records
of what is gone (``new_record``) it loses the columns."""


_TAKEN_OVER = 4
"""From this day on further ones go on from what dbt-spark's had on the day before."""

_OF_THE_SAME_NAME = ("by_time", "until")
"""Those whose own relation is that table so far."""


def _snapshots(schema: str, day: int) -> str:
    """Each kind served here, and by dbt-spark; later also served here from the table that was dbt-spark's."""
    text = "snapshots:\n"
    for name, (table, config) in _KINDS.items():
        before = "true" if name in _OF_THE_SAME_NAME else f"{schema}.{name}_before"
        taken = [("_taken", f", adopt: {before}")] if day >= _TAKEN_OVER else []
        for suffix, further in (("", ""), ("_delta", ", file_format: delta"), *taken):
            text += f"  - name: {name}{suffix}\n    relation: source('raw', '{table}')\n"
            text += f"    config: {{unique_key: id, {config}{further}}}\n"
    return text


def test_snapshots_are_those_of_dbt_spark(spark: SparkSession, tmp_path: Path) -> None:
    project, chance = Project(tmp_path), random.Random(5)
    tables = "[{name: t}, {name: once}]"
    project.write("models/sources.yml", f"sources: [{{name: raw, schema: {project.schema}, tables: {tables}}}]")
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {project.schema}")
    rows: dict[int, tuple[str, int]] = {}
    gone: set[int] = set()
    starts: list[datetime] = []
    for day in range(1, 6):
        for id in chance.sample(range(8), 4):
            if id in rows and chance.random() < 0.4:
                del rows[id]
                gone.add(id)
            else:
                rows[id] = (chance.choice(["ann", "bob", "cyd"]), day)
        _write(spark, f"{project.schema}.t", rows)
        _write(spark, f"{project.schema}.once", {id: row for id, row in rows.items() if id not in gone})
        if day == _TAKEN_OVER:
            for name in _KINDS:
                before = f"{project.schema}.{name}_{'taken' if name in _OF_THE_SAME_NAME else 'before'}"
                spark.sql(f"CREATE TABLE {before} USING delta AS SELECT * FROM {project.schema}.{name}_delta")
        project.write("snapshots/snapshots.yml", _snapshots(project.schema, day))
        starts.append(datetime.now())
        results = project.dbt("snapshot")
        assert day != _TAKEN_OVER or results["by_time_taken"].adapter_response["strategy"] == "adopt"
        for name in _KINDS:
            theirs = _versions(spark, f"{project.schema}.{name}_delta", starts)
            for suffix in ("", "_taken") if day >= _TAKEN_OVER else ("",):
                assert _versions(spark, f"{project.schema}.{name}{suffix}", starts) == theirs, name


def _write(spark: SparkSession, table: str, rows: dict[int, tuple[str, int]]) -> None:
    values = ", ".join(f"({id}, '{name}', timestamp'2024-01-0{day}')" for id, (name, day) in sorted(rows.items()))
    spark.sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT * FROM VALUES {values} AS t(id, name, changed)")


def _versions(spark: SparkSession, table: str, starts: list[datetime]) -> Counter[tuple[Any, ...]]:
    """Each version. A time of a run counts as the run's number: both take their own, and dbt-spark more than one."""

    def bound(time: datetime | None) -> Any:
        return time if time is None or time < starts[0] or time.year == 9999 else bisect(starts, time)

    return Counter(
        (row["id"], row["name"], row["changed"], bound(row["dbt_valid_from"]), bound(row["dbt_valid_to"]), row.get("d"))
        for row in (
            found.asDict() | {"d": found.asDict().get("dbt_is_deleted")} for found in spark.table(table).collect()
        )
    )
