"""Open tables read by Spark's connectors, by ClickHouse, Polars and DuckDB; and changed by Spark behind our back.

Delta tables are tested with Spark 4.2, Iceberg tables with 4.1: the newest for which Iceberg's connector is published.
"""

from __future__ import annotations

import pickle
import subprocess
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from tests.engines import IN_SPARK
from tests.lake.conftest import VERSION
from tests.open_table.readers import Rows, plain, rows_of
from tests.open_table.test_iceberg_types import TYPES, committed, rows_with, schema_of
from tests.open_table.test_models import Models

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.lake

_FORMAT = "iceberg" if VERSION == "4.1" else "delta"
_NAMES = ["rows", "sums", "nested"]
_DUCKDB = Path(__file__).parents[2] / ".venv-duckdb" / "bin" / "python"
_MAINTENANCE = {
    "delta": ("", "OPTIMIZE delta.`{}`", "DELETE FROM delta.`{}` WHERE id = 1", "VACUUM delta.`{}`"),
    "iceberg": (
        "",
        "CALL shown.system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))",
        "DELETE FROM shown.{} WHERE id = 1",
        "CALL shown.system.rewrite_manifests('{}')",
        "CALL shown.system.rewrite_position_delete_files('{}', map('rewrite-all', 'true'))",
        "CALL shown.system.rollback_to_timestamp('{}', TIMESTAMP '{former}')",
        "CALL shown.system.expire_snapshots(table => '{}', older_than => TIMESTAMP '2999-01-01', retain_last => 1)",
        "ALTER TABLE shown.{} ADD COLUMN more INT",
    ),
}


def by_spark(spark: SparkSession, uri: str, **options: Any) -> Rows:
    """The rows of the table, or of one of its versions."""
    return rows_of(spark.read.options(**options).format(_FORMAT).load(uri).toArrow())


def by_polars(uri: str) -> Rows:
    polars = pytest.importorskip("polars")
    return rows_of(getattr(polars, f"scan_{_FORMAT}")(uri).collect().to_arrow())


def by_clickhouse(uri: str, columns: tuple[str, ...], settings: str = "") -> Rows:
    chdb = pytest.importorskip("chdb")
    listed = ", ".join(f'"{name}"' for name in columns)
    function = {"delta": "deltaLakeLocal", "iceberg": "icebergLocal"}[_FORMAT]
    return rows_of(chdb.query(f"SELECT {listed} FROM {function}('{uri}') {settings}", "ArrowTable"))


def by_duckdb(*uris: str) -> list[Rows]:
    """The rows of each table, by a DuckDB of an environment of its own."""
    if not _DUCKDB.exists():
        pytest.skip("there is no .venv-duckdb: `make lake` makes it")
    program = [_DUCKDB, "-m", "tests.lake.by_duckdb", _FORMAT, *uris]
    done = subprocess.run(program, capture_output=True, timeout=120, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr.decode()
    return [Counter(tuple(map(plain, row)) for row in rows) for rows in pickle.loads(done.stdout)]


@pytest.mark.parametrize("thresholds", [Thresholds(), IN_SPARK] if _FORMAT == "iceberg" else [Thresholds()])
def test_readers(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thresholds: Thresholds) -> None:
    monkeypatch.chdir(tmp_path)  # ClickHouse reads files below the current folder only
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    rounds = Models(spark, tmp_path, 3, thresholds, _FORMAT, *_NAMES)
    rounds.world.time = int(time.time() * 1000) - 60_000  # Spark travels in time by those of commits
    for step in range({"delta": 6, "iceberg": 4}[_FORMAT] if thresholds == Thresholds() else 2):
        rounds.step()
        for name in _NAMES:
            uri, columns = rounds.collection(name).place.table_uri, rounds.collection(name).schema.names
            expected = rounds.contents(name, rounds.world.time)
            assert by_spark(spark, uri) == expected, (name, step)
            if name != "nested":
                assert _typed(by_polars(uri)) == _typed(expected), (name, step)
                assert _typed(by_clickhouse(uri, columns)) == _typed(expected), (name, step)
        flat = [name for name in _NAMES if name != "nested"]
        found = by_duckdb(*(rounds.collection(name).place.table_uri for name in flat))
        assert found == [rounds.contents(name, rounds.world.time) for name in flat], step
    for name in _NAMES:
        _check_past(spark, rounds, name)


def _typed(rows: Rows) -> Rows:
    """Without what Arrow types of other readers differ in: text that is bytes."""
    return Counter({tuple(v.decode() if isinstance(v, bytes) else v for v in row): n for row, n in rows.items()})


def _check_past(spark: SparkSession, rounds: Models, name: str) -> None:
    """Former versions by number, by the collection's own times, and Spark's change feed."""
    uri, columns = rounds.collection(name).place.table_uri, rounds.collection(name).schema.names
    versions = rounds.versions[name]
    for number, t in versions[:: max(len(versions) // 4, 1)]:
        expected = rounds.contents(name, t)
        if _FORMAT == "delta":
            assert by_spark(spark, uri, versionAsOf=number) == expected, (name, number)
        elif name != "nested":
            as_of = by_clickhouse(uri, columns, f"SETTINGS iceberg_timestamp_ms = {t}")
            assert _typed(as_of) == _typed(expected), (name, t)
        if (
            _FORMAT == "iceberg" or number < versions[-1][0]
        ):  # of a Delta table Spark refuses times after the last commit
            at = datetime.fromtimestamp(t / 1000, UTC).isoformat(timespec="milliseconds")
            assert by_spark(spark, uri, timestampAsOf=at) == expected, (name, t)
    if _FORMAT == "delta":
        _check_feed(spark, rounds, name)


def _check_feed(spark: SparkSession, rounds: Models, name: str) -> None:
    """What Spark's change feed says adds up to the rows."""
    uri, columns = rounds.collection(name).place.table_uri, rounds.collection(name).schema.names
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(uri)
    found: Counter[tuple[Any, ...]] = Counter()
    table: pa.Table = feed.select(*(f"`{c}`" for c in columns), "_change_type").toArrow()
    for row in table.to_pylist():
        found[tuple(plain(row[c]) for c in columns)] += 1 if row["_change_type"] == "insert" else -1
    assert +found == rounds.contents(name, rounds.world.time)


def _catalog(collections: str) -> dict[str, str]:
    """Settings of a catalog in which Iceberg's connector finds the open tables of a state root."""
    found = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": collections}
    return {**found, ".cache-enabled": "false"}


def test_spark_s_own_maintenance_and_changes(spark: SparkSession, tmp_path: Path) -> None:
    """Compaction moves rows, DELETE takes some: the next run writes the table anew. What only removes former versions
    takes nothing that is needed."""
    rounds = Models(spark, tmp_path, 4, Thresholds(), _FORMAT, "rows")
    uri = rounds.collection("rows").place.table_uri
    table = uri if _FORMAT == "delta" else f"`{Path(uri).parent.name}`.{Path(uri).name}"
    for name, value in _catalog(str(Path(uri).parents[1])).items():
        spark.conf.set(f"spark.sql.catalog.shown{name}", value)
    rounds.world.time = int(time.time() * 1000) - 60_000
    for statement in _MAINTENANCE[_FORMAT]:
        rounds.step()
        former = datetime.fromtimestamp((rounds.world.time - 1) / 1000, UTC).replace(tzinfo=None)
        if statement:
            spark.sql(statement.format(table, former=former.isoformat(" ", timespec="milliseconds")))
    rounds.step()
    assert by_spark(spark, uri) == rounds.contents("rows", rounds.world.time)


@pytest.mark.skipif(_FORMAT == "delta", reason="Delta's types are Spark's")
def test_types(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    uri = committed(tmp_path, None, schema_of(*TYPES), t=1_000).uri
    assert by_spark(spark, uri) == by_polars(uri) == rows_with(TYPES)
