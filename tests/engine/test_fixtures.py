"""The scenarios of ``tests/fixtures/*.txt``, where small deltas are the driver's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.scenarios import SCENARIOS, run
from tests.fixtures.scenario import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_there_are_enough() -> None:
    assert sum(len(read(path).queries) for path in SCENARIOS) >= 200


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_rows_are_as_written(spark: SparkSession, tmp_path: Path, path: Path) -> None:
    run(spark, tmp_path, read(path))
