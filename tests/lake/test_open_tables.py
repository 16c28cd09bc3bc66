"""Open tables read by Spark's Delta connector, by ClickHouse and by Polars; and changed by Spark behind our back."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from tests.lake.conftest import VERSION
from tests.open_table.readers import Rows, plain, rows_of
from tests.open_table.test_models import Models

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.lake, pytest.mark.skipif(VERSION == "4.1", reason="Delta is tested with Spark 4.2")]

_NAMES = ["rows", "sums", "nested"]


def by_spark(spark: SparkSession, uri: str, **options: Any) -> Rows:
    """The rows of the table, or of one of its versions."""
    return rows_of(spark.read.options(**options).format("delta").load(uri).toArrow())


def by_polars(uri: str) -> Rows:
    polars = pytest.importorskip("polars")
    return rows_of(polars.scan_delta(uri).collect().to_arrow())


def by_clickhouse(uri: str, columns: tuple[str, ...]) -> Rows:
    chdb = pytest.importorskip("chdb")
    listed = ", ".join(f'"{name}"' for name in columns)
    return rows_of(chdb.query(f"SELECT {listed} FROM deltaLakeLocal('{uri}')", "ArrowTable"))


def test_readers(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # ClickHouse reads files below the current folder only
    rounds = Models(spark, tmp_path, 3, Thresholds(), *_NAMES)
    rounds.world.time = int(time.time() * 1000) - 60_000  # Spark travels in time by those of commits
    for step in range(6):
        rounds.step()
        for name in _NAMES:
            uri, columns = rounds.collection(name).place.table_uri, rounds.collection(name).schema.names
            expected = rounds.contents(name, rounds.world.time)
            assert by_spark(spark, uri) == expected, (name, step)
            if name != "nested":
                assert _typed(by_polars(uri)) == _typed(expected), (name, step)
                assert _typed(by_clickhouse(uri, columns)) == _typed(expected), (name, step)
    for name in _NAMES:
        _check_past(spark, rounds, name)


def _typed(rows: Rows) -> Rows:
    """Without what Arrow types of other readers differ in: text that is bytes."""
    return Counter({tuple(v.decode() if isinstance(v, bytes) else v for v in row): n for row, n in rows.items()})


def _check_past(spark: SparkSession, rounds: Models, name: str) -> None:
    """Former versions by number and by the collection's own times, and Spark's change feed."""
    uri, columns = rounds.collection(name).place.table_uri, rounds.collection(name).schema.names
    versions = rounds.versions[name]
    for number, t in versions[:: max(len(versions) // 4, 1)]:
        expected = rounds.contents(name, t)
        assert by_spark(spark, uri, versionAsOf=number) == expected, (name, number)
        if number < versions[-1][0]:  # Spark refuses times after the last commit
            at = datetime.fromtimestamp(t / 1000, UTC).isoformat(timespec="milliseconds")
            assert by_spark(spark, uri, timestampAsOf=at) == expected, (name, t)
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(uri)
    found: Counter[tuple[Any, ...]] = Counter()
    table: pa.Table = feed.select(*(f"`{c}`" for c in columns), "_change_type").toArrow()
    for row in table.to_pylist():
        found[tuple(plain(row[c]) for c in columns)] += 1 if row["_change_type"] == "insert" else -1
    assert +found == rounds.contents(name, versions[-1][1])


def test_spark_s_own_maintenance_and_changes(spark: SparkSession, tmp_path: Path) -> None:
    """OPTIMIZE moves rows, DELETE takes some: the next run writes the table anew; VACUUM takes nothing that is needed."""
    rounds = Models(spark, tmp_path, 4, Thresholds(), "rows")
    rounds.world.time = int(time.time() * 1000) - 60_000
    uri = ""
    for statement in ("", "OPTIMIZE delta.`{}`", "DELETE FROM delta.`{}` WHERE id = 1", "VACUUM delta.`{}`"):
        rounds.step()
        uri = rounds.collection("rows").place.table_uri
        if statement:
            spark.sql(statement.format(uri))
    rounds.step()
    assert by_spark(spark, uri) == rounds.contents("rows", rounds.world.time)
