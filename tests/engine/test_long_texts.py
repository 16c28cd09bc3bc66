"""Few rows that take much memory: they are read in Spark, since files do not tell how long their texts are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.relation import stored
from dbt_incremental_dd.trace import driver_reader
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODELS = {
    "groups": "SELECT s, count(*) AS n, max(k) AS k FROM {t} GROUP BY s",
    "rows": "SELECT k, upper(s) AS u FROM {t} WHERE k % 2 = 0",
    "latest": "SELECT s, k FROM {t} QUALIFY row_number() OVER (PARTITION BY s ORDER BY k DESC) <= 2",
    "joined": "SELECT t.k, u.k AS o FROM {t} t JOIN {t} u ON t.s = u.s AND t.k < u.k",
}


@pytest.mark.parametrize("is_little", [True, False], ids=["small files", "large files"])
def test_random_changes(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_little: bool) -> None:
    refused: list[None] = []

    class Refused(driver_reader.TooLarge):
        def __init__(self) -> None:
            refused.append(None)

    monkeypatch.setattr(stored, "room", lambda: 20_000.0)
    monkeypatch.setattr(driver_reader, "TooLarge", Refused)
    if not is_little:
        monkeypatch.setattr(driver_reader, "_LITTLE", 0)
    rng, keys = random.Random(3), iter(range(1_000))
    world = World(spark, tmp_path, {"t": Table("k INT, s STRING")})
    for name, sql in _MODELS.items():
        world.model(name, sql)
    for number in range(3):
        table = world.tables["t"]
        world.delete("t", rng.sample(table.rows, min(len(table.rows), 3)))
        added: list[tuple[Any, ...]] = [(next(keys), rng.choice("abc") * 4_000) for _ in range(12)]
        world.insert("t", [*added, (next(keys), None)])
        failures = world.step_and_check_each(world.check, threads=2)
        assert not failures, "\n\n".join([f"step {number}", *failures])
    assert refused
