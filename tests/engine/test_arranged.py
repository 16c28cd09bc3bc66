"""Inputs that are looked through for keys of another order are arranged by those, and stay as exact."""

from __future__ import annotations

import logging
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.render.arranged import is_sorted_by
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "joined": "SELECT o.id, o.`a.b`, c.name FROM {o} o JOIN {c} c ON c.id = o.customer",
    "left": "SELECT c.id, c.name, o.amount, o.f FROM {c} c LEFT JOIN {o} o ON o.customer = c.id AND o.amount > 2",
    "semi": "SELECT id FROM {c} WHERE EXISTS (SELECT 1 FROM {o} WHERE customer = {c}.id)",
    "anti": "SELECT id FROM {c} WHERE NOT EXISTS (SELECT 1 FROM {o} WHERE customer = {c}.id)",
    "full": "SELECT c.id, c.name, o.id AS other FROM {c} c FULL JOIN {o} o ON o.customer = c.id",
    "left_by_two": "SELECT c.id, o.amount FROM {c} c LEFT JOIN {o} o ON o.customer = c.id AND o.`a.b` = c.name",
    "anti_by_two": "SELECT id FROM {c} c WHERE NOT EXISTS (SELECT 1 FROM {o} WHERE customer = c.id AND `a.b` = c.name)",
    "counted": "SELECT c.id, count(o.id) AS n FROM {c} c LEFT JOIN {o} o ON o.customer = c.id GROUP BY c.id",
    "of_groups": "SELECT c.id FROM {c} c ANTI JOIN (SELECT customer FROM {o} GROUP BY 1 HAVING count(*) > 1) x "
    "ON x.customer = c.id",
    "twice": "SELECT c.id, o.amount FROM {c} c LEFT JOIN {o} o ON o.customer = c.id "
    "WHERE EXISTS (SELECT 1 FROM {o} x WHERE x.customer = c.id AND x.f > 1)",
    "window": "SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY id) AS s FROM {o}",
    "most": "SELECT customer, max(amount) AS m FROM {o} GROUP BY customer",
    "itself": "SELECT x.id, y.id AS other FROM {o} x JOIN {o} y ON x.customer = y.id AND x.amount < y.amount",
    "two": "SELECT o.id, c.id AS c FROM {o} o JOIN {c} c ON c.id = o.customer AND c.name = o.`a.b`",
}
COUNTED = ("left", "semi", "anti", "full", "left_by_two", "anti_by_two", "counted")
"""Models with joins that keep how many matches each key has."""
TABLES = {"o": "id INT, customer INT, amount DECIMAL(10,2), `a.b` STRING, f DOUBLE", "c": "id INT, name STRING"}


def _order(rng: random.Random) -> tuple[Any, ...]:
    amount = rng.choice([None, *map(Decimal, ("1.00", "2.50", "3.00"))])
    return (
        rng.randint(1, 30),
        rng.choice([None, *range(9)]),
        amount,
        rng.choice([None, "a", "1"]),
        rng.choice([0.0, 1.5]),
    )


def _customer(rng: random.Random) -> tuple[Any, ...]:
    return rng.randint(0, 9), rng.choice([None, "a", "b"])


def test_rows_stay_exact(spark: SparkSession, tmp_path: Path) -> None:
    always = Thresholds(arranged_rows=0, arranged_share=0)
    world = World(spark, tmp_path, {name: Table(ddl) for name, ddl in TABLES.items()}, always)
    for name, sql in MODELS.items():
        world.model(name, sql)
    rng = random.Random(1)
    for step in range(7):
        for name, make in (("o", _order), ("c", _customer)):
            rows = world.tables[name].rows
            world.delete(name, rng.sample(rows, min(len(rows), 3 if step != 4 else len(rows))))
            world.insert(name, [make(rng) for _ in range(20 if step in (0, 4) else 3)])
        world.step_exactly(step)
    for name in MODELS:
        place = world.storage.collection(f"{world.schema}.{name}")
        log = place.log()
        assert log is not None
        manifest = place.read_manifest(log.manifest)
        assert manifest is not None
        kinds = {state.partition(".")[0] for state in manifest.inner}
        assert kinds & {"by", "matches"}, name
        assert name not in COUNTED or "matches" in kinds, name


def test_it_is_read_instead_of_the_input(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tables = {name: Table(ddl) for name, ddl in TABLES.items()}
    world = World(spark, tmp_path, tables, Thresholds(arranged_rows=1_000))
    world.insert("o", [(i, i % 500, None, None, None) for i in range(2_000)])
    world.insert("c", [(1, "a")])
    world.model("m", MODELS["joined"])
    world.step()
    read = []
    with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.trace.driver_reader"):
        for customer in (2, 3):
            caplog.clear()
            world.insert("c", [(customer, "b")])
            world.step()
            read.append([path for record in caplog.records for path in vars(record).get("paths", ())])
            world.check()
    (first,) = [file.path for file in world.storage.collection(f"{world.schema}.o").log().files]  # type: ignore[union-attr]
    assert any(path.endswith(first) for path in read[0])
    assert not any(path.endswith(first) for path in read[1])
    assert any("/inner/by." in path for path in read[1])


@pytest.mark.parametrize("name", ["full", "counted", "anti"])
def test_matches_are_counted_instead_of_read(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    tables = {name: Table(ddl) for name, ddl in TABLES.items()}
    world = World(spark, tmp_path, tables, Thresholds(arranged_rows=1_000))
    world.insert("o", [(i, i % 500, None, None, None) for i in range(2_000)])
    world.insert("c", [(i, "a") for i in range(600)])
    world.model("m", MODELS[name])
    world.step()
    read = []
    with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.trace.driver_reader"):
        for i in range(3):
            caplog.clear()
            world.insert("o", [(5_000 + i, 300, None, None, None), (6_000 + i, 550 + i, None, None, None)])
            world.delete("o", [(i, i, None, None, None)])
            world.step()
            read.append([path for record in caplog.records for path in vars(record).get("paths", ())])
            world.check()
    (first,) = [file.path for file in world.storage.collection(f"{world.schema}.o").log().files if file.rows > 1_000]  # type: ignore[union-attr]
    assert any(path.endswith(first) for path in read[0])
    assert not any(path.endswith(first) for path in read[2])
    assert not any("/inner/by." in path for path in read[2])


def test_what_is_sorted_is_left_alone() -> None:
    files = [DataFile(str(i), 100, 0, 0, 0, 1, 1, {"a": (i * 10, i * 10 + 10), "b": (0, 99)}) for i in range(20)]
    assert is_sorted_by(files, "a")
    assert not is_sorted_by(files, "b")
    assert not is_sorted_by(files, "c")


def test_small_files_that_are_not_merged_yet_tell_nothing() -> None:
    large = [DataFile(str(i), 500_000, 0, 0, 0, 1, 1, {"a": (i * 10, i * 10 + 9)}) for i in range(10)]
    small = [DataFile(f"s{i}", 10_000, 0, 0, 0, 1, 1, {"a": (0, 100)}) for i in range(200)]
    assert is_sorted_by([*large, *small], "a")
    assert not is_sorted_by(small, "a")
