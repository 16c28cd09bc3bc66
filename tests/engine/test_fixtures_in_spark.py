"""The same scenarios, every one of them, where Spark computes everything: as with deltas that are too large for the
driver."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.scenarios import SCENARIOS, run
from tests.fixtures.scenario import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
@pytest.mark.usefixtures("in_spark")
def test_rows_are_as_written(spark: SparkSession, tmp_path: Path, path: Path) -> None:
    run(spark, tmp_path, read(path))
