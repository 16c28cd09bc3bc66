"""The scenarios of ``tests/fixtures/*.txt``, where small deltas are the driver's: most ask Spark for nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.scenarios import ASKING, SCENARIOS, run
from tests.fixtures.scenario import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_there_are_enough() -> None:
    assert sum(len(read(path).queries) for path in SCENARIOS) >= 200


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_rows_are_as_written(spark: SparkSession, tmp_path: Path, path: Path) -> None:
    found, known = run(spark, tmp_path, read(path), is_open=False), json.loads(ASKING.read_text())
    if os.environ.get("DD_UPDATE_FIXTURES"):
        ASKING.write_text(json.dumps({**known, path.stem: sorted(found)}, indent=2, sort_keys=True) + "\n")
    else:
        assert sorted(found) == known[path.stem]
