"""Sources of many columns: what Spark's optimizer makes of a plan must not grow with every column of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines import engine
from tests.sources.test_intake import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = 60


def record(id: int, position: int) -> dict[str, Any]:
    """With an array, which the driver leaves to Spark."""
    return {"id": id, "pos": position, "list": [id, position], **{f"c{n}": id * n for n in range(_COLUMNS)}}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_in_spark", [False, True])
def test_many_columns_are_upserted(spark: SparkSession, tmp_path: Path, is_in_spark: bool) -> None:
    thresholds = engine(is_in_spark)
    reader = Reader(spark, tmp_path, envelope="upsert", key="id", order_by="pos", thresholds=thresholds)
    for number in range(3):
        reader.write(f"{number}.json", [record(id, number) for id in range(number, number + 4)])
        reader.take()
    assert sorted(row[0] for row in reader.rows()) == [0, 1, 2, 3, 4, 5]
