"""Delta tables that Spark's own connector writes, read by their logs alone."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import SourceError
from tests.lake.conftest import VERSION
from tests.lake.reading import Reading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lake, pytest.mark.skipif(VERSION == "4.1", reason="Delta is tested with Spark 4.2")]

COLUMNS = "id BIGINT, g INT, v STRING, a DECIMAL(12,2), ts TIMESTAMP, n TIMESTAMP_NTZ, d DATE"
ROWS = """id, CAST(id % 5 AS INT) AS g, concat('v', id % 7) AS v, CAST(id * 1.25 AS DECIMAL(12,2)) AS a,
  timestamp_millis(1700000000000 + id) AS ts, CAST(timestamp_millis(id * 1000) AS TIMESTAMP_NTZ) AS n,
  CAST(date_add(DATE '2024-01-01', CAST(id % 30 AS INT)) AS DATE) AS d"""
MODEL = "SELECT g, count(*) AS n, sum(a) AS a, max(ts) AS ts, min(v) AS v FROM {t} GROUP BY g"
VECTORS = "'delta.enableDeletionVectors' = 'true'"


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """The name of a table of one test."""
    spark.sql("CREATE DATABASE IF NOT EXISTS dl")
    yield "dl.t"
    spark.sql("DROP TABLE IF EXISTS dl.t")


def make(spark: SparkSession, folder: Path, properties: str, rows: int = 200, partition: str = "") -> None:
    """The table, with rows in two files or more."""
    spark.sql(
        f"CREATE TABLE dl.t ({COLUMNS}) USING delta {partition} LOCATION '{folder}/table ü#%'"
        f" TBLPROPERTIES ({properties})"
    )
    spark.sql(f"INSERT INTO dl.t SELECT {ROWS} FROM range(0, {rows})")


def change(spark: SparkSession, rng: random.Random, step: int) -> str:
    """A random change by the connector."""
    low = rng.randrange(0, 200)
    newest = spark.sql("DESCRIBE HISTORY dl.t LIMIT 1").head()
    assert newest is not None
    fresh = f"SELECT {ROWS} FROM range({1000 + step * 10}, {1000 + step * 10 + 5})"
    some = f"SELECT {ROWS} FROM range({low}, {low + 8})"
    statements = {
        "insert": f"INSERT INTO dl.t {fresh}",
        "update": f"UPDATE dl.t SET v = 'u{step}', a = a + 1 WHERE id BETWEEN {low} AND {low + 9}",
        "delete": f"DELETE FROM dl.t WHERE id % 37 = {rng.randrange(37)}",
        "merge": f"MERGE INTO dl.t USING ({some}) s ON dl.t.id = s.id WHEN MATCHED AND s.id % 3 = 0 THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET v = 'm{step}' WHEN NOT MATCHED THEN INSERT *",
        "optimize": "OPTIMIZE dl.t",
        "restore": f"RESTORE TABLE dl.t TO VERSION AS OF {rng.randint(1, newest.version)}",
        "purge": "REORG TABLE dl.t APPLY (PURGE)",
        "overwrite": f"INSERT OVERWRITE dl.t SELECT {ROWS} FROM range({low}, {low + 120})",
    }
    chosen = rng.choice(list(statements))
    spark.sql(statements[chosen])
    return chosen


MAPPED = "'delta.columnMapping.mode' = 'name'"


@pytest.mark.parametrize(
    ("properties", "partition", "by_path"),
    [
        (VECTORS, "", True),
        ("'delta.enableDeletionVectors' = 'false'", "PARTITIONED BY (g)", True),
        (
            f"{VECTORS}, {MAPPED}, 'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '3'",
            "PARTITIONED BY (v, d)",
            False,
        ),
        (f"{VECTORS}, 'delta.columnMapping.mode' = 'id'", "", False),
    ],
)
def test_random_changes(
    spark: SparkSession, tmp_path: Path, table: str, properties: str, partition: str, by_path: bool
) -> None:
    make(spark, tmp_path, properties, partition=partition)
    meta = {"path": f"{tmp_path}/table ü#%", "format": "delta"} if by_path else {}
    reading = Reading(spark, tmp_path, table, MODEL, **meta)
    reading.take_exactly()
    rng, done = random.Random(str((properties, partition))), []
    for step in range(5):
        done += [change(spark, rng, step) for _ in range(rng.choice((1, 1, 2)))]
        reading.take_exactly()
        assert not [note for note in reading.notes if "read whole" in note], done
    assert reading.take().rows == 0


def test_work_follows_the_change(spark: SparkSession, tmp_path: Path, table: str) -> None:
    make(spark, tmp_path, VECTORS, rows=100_000)
    reading = Reading(spark, tmp_path, table)
    assert reading.take().rows == 100_000
    spark.sql("UPDATE dl.t SET v = 'x' WHERE id % 10000 = 7")
    assert (reading.take().rows, reading.read) == (20, 20)
    spark.sql("DELETE FROM dl.t WHERE id % 10000 IN (7, 8)")
    assert (reading.take().rows, reading.read) == (20, 20), "rows that were marked before are not read"
    spark.sql("RESTORE TABLE dl.t TO VERSION AS OF 2")
    assert (reading.take().rows, reading.read) == (20, 20), "and come back as they go"
    spark.sql("OPTIMIZE dl.t")
    spark.sql("REORG TABLE dl.t APPLY (PURGE)")
    assert (reading.take().rows, reading.read) == (0, 0), "compaction changes nothing"
    spark.sql("UPDATE dl.t SET v = 'y' WHERE id = 5")
    assert (reading.take_exactly().rows, reading.read) == (2, 2)


def test_odd_partitions(spark: SparkSession, tmp_path: Path, table: str) -> None:
    spark.sql(
        "CREATE TABLE dl.t (k INT, s STRING, d DATE, ts TIMESTAMP, b BOOLEAN, x DECIMAL(6,2)) USING delta"
        f" PARTITIONED BY (s, d, ts, b, x) LOCATION '{tmp_path}/odd' TBLPROPERTIES ({VECTORS})"
    )
    reading = Reading(spark, tmp_path, table, "SELECT s, count(k) AS n FROM {t} GROUP BY s")
    values = ["'a b/c=d'", "'%41 ü?*[x]'", "''", "NULL", "'{y}'", "'1:2'"]
    for number, value in enumerate(values):
        spark.sql(
            f"INSERT INTO dl.t SELECT k, {value}, DATE '2024-02-29', TIMESTAMP '2024-02-29 01:02:03.5', true, -1.50"
            f" FROM (SELECT explode(sequence({number * 10}, {number * 10 + 4})) AS k)"
        )
        spark.sql("INSERT INTO dl.t VALUES (99, NULL, NULL, NULL, NULL, NULL)")
        reading.take_exactly()
    spark.sql("DELETE FROM dl.t WHERE k % 10 = 3")
    assert (reading.take_exactly().rows, reading.read) == (6, 6)


def test_columns_that_come_and_go(spark: SparkSession, tmp_path: Path, table: str) -> None:
    make(spark, tmp_path, f"{VECTORS}, {MAPPED}")
    reading = Reading(spark, tmp_path, table, "SELECT * FROM {t} WHERE id < 150")
    reading.take_exactly()
    spark.sql("ALTER TABLE dl.t ADD COLUMN extra STRING")
    assert reading.take_exactly().rows == 0
    spark.sql("UPDATE dl.t SET extra = 'e' WHERE id = 7")
    assert (reading.take_exactly().rows, reading.read) == (2, 2)
    spark.sql("ALTER TABLE dl.t DROP COLUMN extra")
    spark.sql("ALTER TABLE dl.t ADD COLUMN extra STRING")
    reading.take_exactly()
    assert "another one of its name" in reading.notes[-1]
    added = Reading(spark, tmp_path / "added", table, envelope="append")
    added.take_exactly()
    spark.sql("ALTER TABLE dl.t RENAME COLUMN extra TO other")
    with pytest.raises(SourceError, match=r"gone: extra"):
        added.take()
    reading.take_exactly()
    assert reading.notes[-1].endswith("(new: other; gone: extra): it is taken in anew")
    spark.sql("UPDATE dl.t SET other = 'o' WHERE id = 7")
    assert (reading.take_exactly().rows, reading.read) == (2, 2)


def test_another_table_in_the_same_place(spark: SparkSession, tmp_path: Path, table: str) -> None:
    make(spark, tmp_path, VECTORS)
    path = f"{tmp_path}/table ü#%"
    reading = Reading(spark, tmp_path, table, MODEL, path=path, format="delta")
    added = Reading(spark, tmp_path / "added", table, path=path, format="delta", envelope="append")
    reading.take_exactly()
    added.take_exactly()
    spark.sql("DROP TABLE dl.t")
    shutil.rmtree(path)
    make(spark, tmp_path, VECTORS, rows=150)
    spark.sql("DELETE FROM dl.t WHERE id = 3")
    assert reading.take_exactly().rows == 51
    assert "read whole and compared" in reading.notes[-1]
    with pytest.raises(SourceError, match="cannot be told"):
        added.take()


def test_files_that_were_vacuumed(spark: SparkSession, tmp_path: Path, table: str) -> None:
    make(spark, tmp_path, "'delta.enableDeletionVectors' = 'false'")
    reading = Reading(spark, tmp_path, table, MODEL)
    reading.take_exactly()
    spark.sql("UPDATE dl.t SET v = 'x' WHERE id = 7")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql("VACUUM dl.t RETAIN 0 HOURS")
    assert reading.take_exactly().rows == 2
    assert "is not there any more" in reading.notes[-1]


def test_generated_and_identity_columns(spark: SparkSession, tmp_path: Path, table: str) -> None:
    spark.sql(
        "CREATE TABLE dl.t (k BIGINT GENERATED ALWAYS AS IDENTITY, at TIMESTAMP, s STRUCT<x: INT, l: ARRAY<STRING>>,"
        f" day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) USING delta PARTITIONED BY (day) LOCATION '{tmp_path}/g'"
        f" TBLPROPERTIES ({VECTORS})"
    )
    reading = Reading(spark, tmp_path, table, "SELECT day, max(k) AS k FROM {t} GROUP BY day")
    for day in (1, 2):
        spark.sql(
            f"INSERT INTO dl.t (at, s) SELECT timestamp_seconds({day} * 86400 + id),"
            " named_struct('x', CAST(id AS INT), 'l', array('a', CAST(id AS STRING))) FROM range(0, 50)"
        )
        reading.take_exactly()
    spark.sql("UPDATE dl.t SET s = named_struct('x', 0, 'l', array()) WHERE k % 10 = 1")
    assert reading.take_exactly().rows == 20
