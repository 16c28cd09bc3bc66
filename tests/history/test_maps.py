"""Histories with a key of rows with maps, of which Spark itself compares none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.runtime.verify import verify_model
from tests.engines import IN_SPARK
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KINDS = {
    "by_key": History(key=("id",)),
    "checked": History(key=("id",), compared=("m",), deletes="keep"),
}


@pytest.mark.parametrize("thresholds", [Thresholds(), IN_SPARK], ids=["driver", "Spark"])
def test_a_version_for_each_other_map(spark: SparkSession, tmp_path: Path, thresholds: Thresholds) -> None:
    world = World(spark, tmp_path, {"t": Table("id INT, n INT, m MAP<STRING, ARRAY<INT>>")}, thresholds)
    for name, history in _KINDS.items():
        world.model(name, "SELECT * FROM {t}", history)
    one, other = {"a": [1], "b": None}, {"b": None, "a": [1, 2]}
    world.insert("t", [(1, 0, one), (2, 0, None), (3, 0, {})])
    world.step()
    for row in ((1, 0, other), (1, 1, other), (2, 1, one)):
        world.delete("t", [old for old in world.tables["t"].rows if old[0] == row[0]])
        world.insert("t", [row])
        world.step()
    versions = {}
    for name in _KINDS:
        assert verify_model(spark, world.storage, f"{world.schema}.{name}").exact
        rows = Collection(world.storage, f"{world.schema}.{name}").as_of().to_pylist()
        versions[name] = sorted(row["id"] for row in rows)
    assert versions == {"by_key": [1, 1, 1, 2, 2, 3], "checked": [1, 1, 2, 2, 3]}
