"""TPC-H's 22 queries as models, without any fallback, at a small scale; ``make tpch`` runs them at 0.1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.tpch.feed import Feed
from benchmarks.tpch.run import QUERIES, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_all_queries_are_exact_after_every_round(spark: SparkSession, tmp_path: Path) -> None:
    names = sorted(path.stem for path in QUERIES.glob("q*.sql"))
    assert len(names) == 22
    assert not run(spark, tmp_path, Feed(tmp_path, 0.01, 0.002), names, rounds=2)
