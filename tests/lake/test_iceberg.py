"""Iceberg tables that Spark's own connector writes, read by their metadata."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import SourceError
from tests.lake.conftest import VERSION
from tests.lake.reading import Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.lake,
    pytest.mark.skipif(VERSION != "4.1", reason="the newest Spark for which Iceberg's connector is published is 4.1"),
]

COLUMNS = "id BIGINT, g INT, v STRING, a DECIMAL(12,2), ts TIMESTAMP, n TIMESTAMP_NTZ, d DATE"
ROWS = """id, CAST(id % 5 AS INT) AS g, concat('v', id % 7) AS v, CAST(id * 1.25 AS DECIMAL(12,2)) AS a,
  timestamp_millis(1700000000000 + id) AS ts, CAST(timestamp_millis(id * 1000) AS TIMESTAMP_NTZ) AS n,
  CAST(date_add(DATE '2024-01-01', CAST(id % 30 AS INT)) AS DATE) AS d"""
MODEL = "SELECT g, count(*) AS n, sum(a) AS a, max(ts) AS ts, min(v) AS v FROM {t} GROUP BY g"
T = "ice.db.t"


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """The name of a table of one test."""
    spark.sql("CREATE DATABASE IF NOT EXISTS ice.db")
    yield T
    spark.sql(f"DROP TABLE IF EXISTS {T} PURGE")


def make(spark: SparkSession, version: int, mode: str, rows: int = 200, partition: str = "", more: str = "") -> None:
    """The table, with rows."""
    modes = ", ".join(f"'write.{what}.mode' = '{mode}'" for what in ("delete", "update", "merge"))
    spark.sql(
        f"CREATE TABLE {T} ({COLUMNS}) USING iceberg {partition}"
        f" TBLPROPERTIES ('format-version' = '{version}', {modes}{more})"
    )
    spark.sql(f"INSERT INTO {T} SELECT {ROWS} FROM range(0, {rows})")


def snapshots(spark: SparkSession) -> list[int]:
    """The table's snapshots from which the current one came, the first ones first."""
    found = spark.sql(f"SELECT snapshot_id FROM {T}.history WHERE is_current_ancestor ORDER BY made_current_at")
    return [row[0] for row in found.collect()]


def change(spark: SparkSession, rng: random.Random, step: int) -> str:
    """A random change by the connector."""
    low = rng.randrange(0, 200)
    fresh = f"SELECT {ROWS} FROM range({1000 + step * 10}, {1000 + step * 10 + 5})"
    some = f"SELECT {ROWS} FROM range({low}, {low + 8})"
    statements = {
        "insert": f"INSERT INTO {T} {fresh}",
        "update": f"UPDATE {T} SET v = 'u{step}', a = a + 1 WHERE id BETWEEN {low} AND {low + 9}",
        "delete": f"DELETE FROM {T} WHERE id % 37 = {rng.randrange(37)}",
        "merge": f"MERGE INTO {T} t USING ({some}) s ON t.id = s.id WHEN MATCHED AND s.id % 3 = 0 THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET v = 'm{step}' WHEN NOT MATCHED THEN INSERT *",
        "compact": "CALL ice.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))",
        "compact deletes": "CALL ice.system.rewrite_position_delete_files('db.t', map('rewrite-all', 'true'))",
        "manifests": "CALL ice.system.rewrite_manifests('db.t')",
        "rollback": f"CALL ice.system.rollback_to_snapshot('db.t', {rng.choice(snapshots(spark))})",
        "overwrite": f"INSERT OVERWRITE {T} SELECT {ROWS} FROM range({low}, {low + 120})",
    }
    chosen = rng.choice(list(statements))
    spark.sql(statements[chosen])
    return chosen


@pytest.mark.parametrize(
    ("version", "mode", "partition", "more"),
    [
        (2, "merge-on-read", "", ", 'write.delete.granularity' = 'partition'"),
        (2, "copy-on-write", "PARTITIONED BY (g)", ""),
        (3, "merge-on-read", "PARTITIONED BY (bucket(3, id), days(ts))", ""),
    ],
)
def test_random_changes(
    spark: SparkSession, tmp_path: Path, table: str, version: int, mode: str, partition: str, more: str
) -> None:
    make(spark, version, mode, partition=partition, more=more)
    reading = Reading(spark, tmp_path, table, MODEL)
    reading.take_exactly()
    rng, done = random.Random(f"{version}{mode}"), []
    for step in range(5):
        done += [change(spark, rng, step) for _ in range(rng.choice((1, 1, 2)))]
        reading.take_exactly()
        assert not [note for note in reading.notes if "read whole" in note], (done, reading.notes)
    assert reading.take().rows == 0


@pytest.mark.parametrize("version", [2, 3])
def test_work_follows_the_change(spark: SparkSession, tmp_path: Path, table: str, version: int) -> None:
    make(spark, version, "merge-on-read", rows=100_000)
    reading = Reading(spark, tmp_path, table, connector="iceberg")
    assert reading.take().rows == 100_000
    spark.sql(f"UPDATE {T} SET v = 'x' WHERE id % 10000 = 7")
    assert (reading.take().rows, reading.read) == (20, 20)
    spark.sql(f"DELETE FROM {T} WHERE id % 10000 IN (7, 8)")
    assert (reading.take().rows, reading.read) == (20, 20), "rows that were marked before are not read"
    spark.sql(f"CALL ice.system.rollback_to_snapshot('db.t', {snapshots(spark)[-2]})")
    assert (reading.take().rows, reading.read) == (20, 20), "and come back as they go"
    spark.sql("CALL ice.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))")
    assert (reading.take().rows, reading.read) == (0, 0), "compaction changes nothing"
    spark.sql(f"UPDATE {T} SET v = 'y' WHERE id = 5")
    assert (reading.take_exactly().rows, reading.read) == (2, 2)


def test_copies_on_write_cost_the_rewritten_files(spark: SparkSession, tmp_path: Path, table: str) -> None:
    make(spark, 2, "copy-on-write", rows=10_000, partition="PARTITIONED BY (g)")
    reading = Reading(spark, tmp_path, table, MODEL)
    reading.take_exactly()
    spark.sql(f"UPDATE {T} SET v = 'x' WHERE id = 7")
    assert reading.take_exactly().rows == 2
    assert 0 < reading.read <= 4_000, "the files of one partition of five, as they were and as they are"


def test_columns_and_partitions_that_change(spark: SparkSession, tmp_path: Path, table: str) -> None:
    make(spark, 3, "merge-on-read", partition="PARTITIONED BY (g)")
    reading = Reading(spark, tmp_path, table, "SELECT * FROM {t} WHERE id < 150")
    reading.take_exactly()
    spark.sql(f"ALTER TABLE {T} ADD COLUMN extra STRING")
    assert reading.take_exactly().rows == 0
    spark.sql(f"UPDATE {T} SET extra = 'e' WHERE id = 7")
    assert (reading.take_exactly().rows, reading.read) == (2, 2)
    spark.sql(f"ALTER TABLE {T} REPLACE PARTITION FIELD g WITH truncate(1, v)")
    spark.sql(f"INSERT INTO {T} SELECT {ROWS}, 'n' FROM range(500, 520)")
    assert (reading.take_exactly().rows, reading.read) == (20, 20)
    spark.sql(f"ALTER TABLE {T} ADD COLUMN s STRUCT<x: INT, y: STRING>")
    spark.sql(f"INSERT INTO {T} SELECT {ROWS}, 'n', named_struct('x', 1, 'y', 'why') FROM range(600, 603)")
    assert reading.take_exactly().rows == 3
    added = Reading(spark, tmp_path / "added", table, envelope="append")
    added.take_exactly()
    spark.sql(f"ALTER TABLE {T} RENAME COLUMN s.y TO z")
    with pytest.raises(SourceError, match=r"other type or name: s"):
        added.take()
    reading.take_exactly()
    assert reading.notes[-1].endswith("(other type or name: s): it is taken in anew")
    spark.sql(f"ALTER TABLE {T} RENAME COLUMN s.z TO y")
    reading.take_exactly()
    spark.sql(f"DELETE FROM {T} WHERE id = 8")
    assert (reading.take_exactly().rows, reading.read) == (1, 1)
    spark.sql(f"ALTER TABLE {T} DROP COLUMN extra")
    spark.sql(f"ALTER TABLE {T} ADD COLUMN extra STRING")
    reading.take_exactly()
    assert "another one of its name" in reading.notes[-1]


def test_snapshots_that_expired_and_tables_made_anew(spark: SparkSession, tmp_path: Path, table: str) -> None:
    make(spark, 2, "merge-on-read")
    reading = Reading(spark, tmp_path, table, MODEL)
    added = Reading(spark, tmp_path / "added", table, envelope="append")
    reading.take_exactly()
    added.take_exactly()
    spark.sql(f"UPDATE {T} SET v = 'x' WHERE id = 7")
    spark.sql(
        "CALL ice.system.expire_snapshots(table => 'db.t', older_than => TIMESTAMP '2999-01-01', retain_last => 1)"
    )
    assert reading.take_exactly().rows == 2
    assert "has expired" in reading.notes[-1]
    with pytest.raises(SourceError, match="has expired"):
        added.take()
    spark.sql(f"DROP TABLE {T} PURGE")
    make(spark, 2, "copy-on-write", rows=150)
    assert reading.take_exactly().rows == 52
    assert "another table of the same name" in reading.notes[-1]


def test_what_is_not_understood_is_compared(spark: SparkSession, tmp_path: Path, table: str) -> None:
    spark.sql(f"CREATE TABLE {T} (k INT, v STRING) USING iceberg TBLPROPERTIES ('write.format.default' = 'orc')")
    reading = Reading(spark, tmp_path, table, "SELECT v, count(k) AS n FROM {t} GROUP BY v")
    assert reading.take_exactly().rows == 0
    spark.sql(f"INSERT INTO {T} VALUES (1, 'a'), (2, 'b')")
    reading.take_exactly()
    assert "ORC files" in reading.notes[-1]
    spark.sql(f"DELETE FROM {T} WHERE k = 1")
    assert reading.take_exactly().rows == 1


def test_a_branch_that_is_published(spark: SparkSession, tmp_path: Path, table: str) -> None:
    make(spark, 2, "merge-on-read")
    reading = Reading(spark, tmp_path, table, MODEL)
    reading.take_exactly()
    spark.sql(f"ALTER TABLE {T} CREATE BRANCH audit")
    spark.sql(f"DELETE FROM {T}.branch_audit WHERE id < 10")
    assert reading.take_exactly().rows == 0
    spark.sql(f"UPDATE {T} SET v = 'main' WHERE id = 50")
    reading.take_exactly()
    spark.sql("CALL ice.system.set_current_snapshot(table => 'db.t', ref => 'audit')")
    assert (reading.take_exactly().rows, reading.read) == (12, 12)
