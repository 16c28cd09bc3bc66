"""A slice of ``make fuzz``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.run import group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("seed", [11])
def test_random_queries_are_exact_after_every_step(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    failures = group(spark, tmp_path, seed, size=12, depth=4, steps=3)
    assert not failures, "\n\n".join(failures)
