"""Upserts taken in on the driver against the same taken in by Spark."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.envelopes import upsert_spark
from dbt_incremental_dd.trace import limits
from tests.sources.test_intake import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": "bigint", "k": "string", "v": "string", "pos": "int", "at": "date", "flag": "boolean"}
SETTINGS: dict[str, dict[str, Any]] = {
    "ordered with deletes": {"key": ["id"], "order_by": ["pos"], "deleted_when": "v = 'x' OR flag"},
    "ordered by two": {"key": ["id", "k"], "order_by": ["at", "pos"], "deleted_when": "v IN ('x', 'y')"},
    "as they come": {"key": ["id"], "deleted_when": "v = 'x'"},
    "never deleted": {"key": ["k"], "order_by": ["pos"]},
}


@pytest.mark.parametrize("title", SETTINGS)
def test_as_in_spark(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str) -> None:
    rng = random.Random(title)
    merged = []

    def told(*args: Any) -> Any:
        merged.append(merge(*args))
        return merged[-1]

    merge = upsert_spark.merge_locally
    monkeypatch.setattr(upsert_spark, "merge_locally", told)
    readers = {}
    for where in ("driver", "Spark"):
        (tmp_path / where).mkdir()
        readers[where] = Reader(spark, tmp_path / where, COLUMNS, envelope="upsert", **SETTINGS[title])
    for number in range(6):
        records = [record(rng) for _ in range(rng.choice([1, 8, 40]))]
        for where, reader in readers.items():
            reader.write(f"{number}a.json", records[::2])
            reader.write(f"{number}b.json", records[1::2])
            with monkeypatch.context() as patch:
                if where == "Spark":
                    patch.setattr(limits, "TAKEN_ROWS", 0)
                reader.take()
        assert readers["driver"].rows() == readers["Spark"].rows(), f"batch {number}"
    assert [found is not None for found in merged] == [True, False] * 5


def test_a_condition_that_only_spark_can_read_is_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, COLUMNS, envelope="upsert", key=["id"], deleted_when="v RLIKE '^x' OR v ILIKE 'Y'")
    for number, values in enumerate((["a", "b"], ["x1", "b"], ["y", "z"])):
        reader.write(f"{number}.json", [{"id": i, "v": v} for i, v in enumerate(values)])
        reader.take()
    assert [row[2] for row in reader.rows()] == ["z"]
    reader.spec = replace(reader.spec, settings=replace(reader.spec.settings, deleted_when="v = 'x' AND ("))
    reader.write("3.json", [{"id": 1, "v": "c"}])
    with pytest.raises(ConfigError, match="deleted_when"):
        reader.take()


def record(rng: random.Random) -> dict[str, Any]:
    """Few keys and positions, so that there are ties, records that come late, and NULLs."""
    return {
        "id": rng.randrange(12),
        "k": rng.choice("ab"),
        "v": rng.choice([*"xyz", "z", None]),
        "pos": rng.choice([1, 2, 3, 4, None]),
        "at": rng.choice(["2024-01-01", "2024-01-02", None]),
        "flag": rng.choice([True, False, False, None]),
    }
