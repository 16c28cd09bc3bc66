"""Small tables of the catalog as sources: read on the driver where Arrow reads what Spark does, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.sources.connectors.table import connector
from tests.sources.test_table_partitions import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "k BIGINT, b TINYINT, s STRING, n DECIMAL(12,2), d DATE, t TIMESTAMP, w TIMESTAMP_NTZ, f DOUBLE, y BINARY, o BOOLEAN"
ROWS = (
    "(1, 2, 'a', 1.50, DATE '2026-01-01', TIMESTAMP '2026-01-01 10:00:00.123456', TIMESTAMP_NTZ '2026-01-01 10:00:00',"
    " 0.5, X'00ff', true)",
    "(2, NULL, '', -0.01, DATE '1500-02-28', TIMESTAMP '1500-02-28 00:00:00', TIMESTAMP_NTZ '1500-02-28 00:00:00',"
    " double('NaN'), X'', false)",
    "(3, 127, 'ü\\'', NULL, DATE '0001-01-01', TIMESTAMP '9999-12-31 23:59:59', NULL, -0.0, NULL, NULL)",
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """Whether each intake's table was read on the driver."""
    seen: list[bool] = []
    original = connector._few

    def few(*args: object) -> object:
        found = original(*args)  # type: ignore[arg-type]
        seen.append(found is not None)
        return found

    monkeypatch.setattr(connector, "_few", few)
    yield seen


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS"])
def test_all_types_are_read_on_the_driver(spark: SparkSession, tmp_path: Path, read: list[bool], kind: str) -> None:
    former = spark.conf.get("spark.sql.parquet.outputTimestampType")
    spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
    try:
        table = Table(spark, tmp_path, f"({COLUMNS}) USING parquet")
        table.sql(f"INSERT INTO {{t}} VALUES {', '.join(ROWS)}")
        table.check()
        table.sql(f"INSERT INTO {{t}} VALUES {ROWS[0]}, {ROWS[2]}, {ROWS[3]}")
        table.check()
        table.sql(f"INSERT OVERWRITE {{t}} VALUES {ROWS[1]}, {ROWS[3]}")
        table.check()
        table.sql("TRUNCATE TABLE {t}")
        table.check()
    finally:
        spark.conf.set("spark.sql.parquet.outputTimestampType", str(former))
    assert read[:3] == [True, True, True]


@pytest.mark.parametrize(
    "definition",
    [
        "(k INT, c CHAR(5)) USING parquet",
        "(k INT, c VARCHAR(5)) USING parquet",
        "(k INT, c STRING) USING orc",
        "(k INT, c STRING) USING parquet PARTITIONED BY (c)",
    ],
)
def test_what_arrow_may_read_otherwise_is_spark_s(
    spark: SparkSession, tmp_path: Path, read: list[bool], definition: str
) -> None:
    table = Table(spark, tmp_path, definition)
    table.sql("INSERT INTO {t} VALUES (1, 'a'), (2, NULL)")
    table.check()
    table.sql("INSERT INTO {t} VALUES (1, 'a'), (3, 'abc')")
    table.check()
    assert not any(read)


def test_a_column_that_comes_later_is_spark_s(spark: SparkSession, tmp_path: Path, read: list[bool]) -> None:
    table = Table(spark, tmp_path, "(k INT) USING parquet")
    table.sql("INSERT INTO {t} VALUES (1)")
    table.sql("ALTER TABLE {t} ADD COLUMNS (v STRING DEFAULT 'x')")
    table.sql("INSERT INTO {t} VALUES (2, 'y')")
    table.check()
    assert read == [False]


def test_dates_of_the_former_calendar_are_spark_s(spark: SparkSession, tmp_path: Path, read: list[bool]) -> None:
    mode = "spark.sql.parquet.datetimeRebaseModeInWrite"
    former = spark.conf.get(mode)
    spark.conf.set(mode, "LEGACY")
    try:
        table = Table(spark, tmp_path, "(k INT, d DATE) USING parquet")
        table.sql("INSERT INTO {t} VALUES (1, DATE '1500-02-28')")
    finally:
        spark.conf.set(mode, str(former))
    table.check()
    assert read == [False]
