"""Nexmark's queries as models, without any fallback, at a small scale; ``make nexmark`` runs them at 0.1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import rounds
from benchmarks.nexmark.feed import Feed
from benchmarks.nexmark.run import QUERIES, sources
from dbt_incremental_dd.core.thresholds import Thresholds
from tests.engine.plans import assert_as_before
from tests.engines import engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLANS = Path(__file__).with_name("nexmark_plans")
NAMES = sorted(path.stem for path in QUERIES.glob("q*.sql"))
TABLES = {
    "person": "id BIGINT, name STRING, email STRING, card STRING, city STRING, state STRING, date_time TIMESTAMP, "
    "extra STRING",
    "auction": "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, "
    "date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, date_time TIMESTAMP, "
    "arrived TIMESTAMP, extra STRING",
    "side": "key BIGINT, value STRING",
}


def test_all_queries_are_here() -> None:
    assert len(NAMES) == 23


@pytest.mark.parametrize("name", NAMES)
def test_plans_are_as_before(spark: SparkSession, name: str) -> None:
    assert_as_before(spark, QUERIES / f"{name}.sql", "nexmark", TABLES, PLANS)


@pytest.mark.slow
@pytest.mark.parametrize("is_all_in_spark", [False, True], ids=["on the driver", "in Spark"])
def test_all_queries_are_exact_after_every_round(spark: SparkSession, tmp_path: Path, is_all_in_spark: bool) -> None:
    run(spark, tmp_path, None, engine(is_all_in_spark))


def test_some_queries_are_exact_after_every_round(spark: SparkSession, tmp_path: Path) -> None:
    run(spark, tmp_path, ["q06", "q11", "q15"])


def run(spark: SparkSession, folder: Path, only: list[str] | None, thresholds: Thresholds | None = None) -> None:
    """Two rounds after a first load of 3,000 events."""
    feed = Feed(folder, 0.003, 0.03)
    spark.sql("CREATE DATABASE IF NOT EXISTS nexmark")
    models = rounds.requests("nexmark", QUERIES, sources(folder), only)
    assert not rounds.run(spark, folder, feed, models, rounds=2, thresholds=thresholds)
