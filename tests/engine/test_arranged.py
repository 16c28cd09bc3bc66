"""Inputs that are looked through for keys of another order are arranged by those, and stay as exact."""

from __future__ import annotations

import logging
import random
import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.manifest import ModelManifest, UsedArrangement
from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.render import arranged, arrangement
from dbt_incremental_dd.render.arranged import is_sorted_by
from dbt_incremental_dd.render.arrangement import Arrangement
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.explain import explain_model
from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.tiers import mergeable
from tests.oracle import Table, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from dbt_incremental_dd.core.time import Time

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
        manifest = manifest_of(world, name)
        has_matches = any(state.startswith("matches.") for state in manifest.inner)
        assert bool(has_matches or manifest.arrangements) is (name != "window"), "a window has its input's rows itself"
        assert name not in COUNTED or has_matches, name


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


THREE = {
    "one": "SELECT o.id, c.name FROM {o} o JOIN {c} c ON c.id = o.customer",
    "two": "SELECT c.name, sum(o.amount) AS s FROM {o} o JOIN {c} c ON c.id = o.customer GROUP BY c.name",
    "three": "SELECT o.f FROM {o} o JOIN {c} c ON c.id = o.customer WHERE c.name = 'b'",
}


def arranged_world(spark: SparkSession, folder: Path) -> World:
    """Models whose input is arranged by its customers."""
    world = World(spark, folder, {name: Table(ddl) for name, ddl in TABLES.items()}, Thresholds(arranged_rows=1_000))
    world.insert("o", [(i, i % 500, Decimal(i % 7), None, None) for i in range(2_000)])
    world.insert("c", [(1, "a")])
    for name, sql in THREE.items():
        world.model(name, sql)
    world.step()
    world.insert("c", [(2, "b")])
    world.step_exactly(1)
    return world


def manifest_of(world: World, name: str) -> ModelManifest:
    place = world.storage.collection(f"{world.schema}.{name}")
    log = place.log()
    assert log is not None
    manifest = place.read_manifest(log.manifest)
    assert isinstance(manifest, ModelManifest)
    return manifest


def arrangement_of(world: World) -> CollectionStore:
    """Where the orders are stored by customer; it is the only one."""
    orders = world.storage.collection(f"{world.schema}.o")
    (only,) = orders.arrangements()
    return only


def log_of(place: CollectionStore) -> Log:
    log = place.log()
    assert log is not None
    return log


def test_models_share_it(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = arranged_world(spark, tmp_path)
    stored = log_of(arrangement_of(world))
    assert set(stored.schema.names) == {"id", "customer", "amount", "f", TIME, DIFF}, "what any of the three reads"
    assert total_rows(stored.files) == 2_000
    (first,) = [file.path for file in log_of(world.storage.collection(f"{world.schema}.o")).files]
    with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.trace.driver_reader"):
        world.insert("c", [(3, "b")])
        world.insert("o", [(7_000, 3, Decimal(1), None, 1.5), (7_001, 3, None, None, None)])
        world.delete("o", [(503, 3, Decimal(503 % 7), None, None)])
        world.step_exactly(2)
    read = [path for record in caplog.records for path in vars(record).get("paths", ())]
    assert not any(path.endswith(first) for path in read)
    assert total_rows(log_of(arrangement_of(world)).files) == 2_003
    used = UsedArrangement(f"{world.schema}.o", "customer", 0)
    assert all(manifest_of(world, name).arrangements == (used,) for name in THREE)
    told = explain_model(LazySession.of(spark), world.storage, f"{world.schema}.two")
    names = ", ".join(sorted(f"{world.schema}.{name}" for name in THREE))
    assert f"Arrangement of {world.schema}.o by customer: 2,003 updates" in told
    assert f"read by {names}" in told


def test_one_that_runs_less_often_reads_it_at_its_own_time(spark: SparkSession, tmp_path: Path) -> None:
    world = arranged_world(spark, tmp_path)
    world.insert("o", [(8_000, 2, Decimal(5), None, 1.0)])
    world.insert("c", [(4, "b")])
    world.step()
    before = log_of(arrangement_of(world)).frontiers.last
    world.insert("o", [(8_001, 5, Decimal(5), None, 1.0)])
    world.insert("c", [(5, "b")])
    other = dict(world.models)
    world.models = {"one": THREE["one"]}
    world.step()
    assert log_of(arrangement_of(world)).frontiers.last > before
    world.models = other
    world.insert("c", [(6, "b")])
    world.step_exactly(4)


def test_a_damaged_one_is_made_anew(spark: SparkSession, tmp_path: Path) -> None:
    world = arranged_world(spark, tmp_path)
    for step, spoil in enumerate((spoiled_data, lambda place: (Path(place.uri) / "_delta_log").rename(tmp_path / "x"))):
        spoil(arrangement_of(world))
        for customer in (3, 4):
            world.insert("c", [(10 * step + customer, "b")])
            world.step_exactly(step)
        assert total_rows(log_of(arrangement_of(world)).files) == 2_000


@pytest.mark.parametrize("is_made", [False, True])
def test_one_that_another_model_removes_meanwhile(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_made: bool
) -> None:
    world = arranged_world(spark, tmp_path)
    place, read = arrangement_of(world), arrangement.read_files
    copy = tmp_path / "copy"
    shutil.copytree(place.uri, copy)

    def removed(*given: Any) -> Any:
        monkeypatch.setattr(arrangement, "read_files", read)
        place.remove()
        try:
            return read(*given)
        finally:
            if is_made:
                shutil.copytree(copy, place.uri)

    monkeypatch.setattr(arrangement, "read_files", removed)
    world.insert("c", [(3, "b")])
    world.step_exactly(0)
    assert arrangement.read_files is read


@pytest.mark.parametrize("is_compacted", [False, True])
def test_one_that_another_model_changes_before_it_is_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compacted: bool
) -> None:
    """It has been seen to serve; then another model makes it anew for columns of its own, or its history is cut."""
    world = arranged_world(spark, tmp_path)
    find = Arrangement.find
    found: list[Any] = []

    def changed(self: Arrangement, values: Sequence[Any], columns: Schema, t0: Time, t1: Time) -> Any:
        log = log_of(self.place)
        if is_compacted:
            log.commit(Commit(upper=t1 + 1, since=t1))
        else:
            self.place.remove()
            self.make(Schema(tuple(column for column in log.schema if column.name in ("customer", TIME, DIFF))), t1)
        found.append(find(self, values, columns, t0, t1))
        return found[-1]

    monkeypatch.setattr(Arrangement, "find", changed)
    world.insert("c", [(3, "b")])
    world.models = {"one": THREE["one"]}
    world.step_exactly(0)
    assert found == [None]


def test_one_that_is_damaged_is_given_up_where_it_is_only_kept_up(spark: SparkSession, tmp_path: Path) -> None:
    world = arranged_world(spark, tmp_path)
    step = 0
    while not mergeable(log_of(arrangement_of(world)).files):
        world.insert("o", [(9_000 + step, 400, None, None, None)])
        world.step_exactly(step)
        step += 1
    spoiled_data(arrangement_of(world))
    world.insert("o", [(9_000 + step, 400, None, None, None)])
    world.step_exactly(step)
    assert not world.storage.collection(f"{world.schema}.o").arrangements()


def test_a_damaged_input_is_told_and_leaves_it(spark: SparkSession, tmp_path: Path) -> None:
    world = arranged_world(spark, tmp_path)
    world.insert("o", [(9_000, 2, None, None, None)])
    world._next_run()
    spoiled_data(world.storage.collection(f"{world.schema}.o"))
    world.insert("c", [(3, "b")])
    with pytest.raises(SourceError, match=r"o, which is damaged"):
        world.step()
    assert arrangement_of(world).log() is not None


def spoiled_data(place: CollectionStore) -> None:
    for file in log_of(place).files:
        path = Path(place.trace_uri) / file.path
        path.write_bytes(b"PAR1" + bytes(path.stat().st_size - 8) + b"PAR1")


def test_an_input_that_is_built_anew_is_arranged_anew(spark: SparkSession, tmp_path: Path) -> None:
    tables = {name: Table(ddl) for name, ddl in TABLES.items()}
    world = World(spark, tmp_path, tables, Thresholds(arranged_rows=1_000))
    world.insert("o", [(i, i % 500, None, None, None) for i in range(2_000)])
    world.insert("c", [(1, "a")])
    world.model("o2", "SELECT * FROM {o}")
    world.model("m", "SELECT o.id, c.name FROM {o2} o JOIN {c} c ON c.id = o.customer")
    for customer in (2, 3):
        world.step()
        world.insert("c", [(customer, "b")])
    world.step()
    assert manifest_of(world, "m").arrangements
    world.model("o2", "SELECT * FROM {o} WHERE id % 2 = 0")
    for customer in (4, 6):
        world.step()
        world.check()
        world.insert("c", [(customer, "b")])
    world.step()
    world.check()


def test_nobody_keeps_up_what_nobody_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arranged, "_IDLE_RUNS", 2)
    world = arranged_world(spark, tmp_path)
    place = arrangement_of(world)
    list(vacuum(world.storage, older_than=0))
    assert total_rows(log_of(place).files) == 2_000
    for step in range(5):
        world.insert("o", [(9_000 + step, 400, None, None, None)])
        world.step_exactly(step)
    assert not any(manifest_of(world, name).arrangements for name in THREE)
    list(vacuum(world.storage, older_than=0))
    assert not Path(place.uri).exists()
    world.insert("c", [(400, "b")])
    world.step_exactly(6)


def test_compaction_drops_one_that_the_history_has_left_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arranged, "_IDLE_RUNS", 0)
    world = arranged_world(spark, tmp_path)
    for step in range(3):
        world.insert("o", [(9_000 + step, 400, None, None, None)])
        world.step_exactly(step)
    list(compact(LazySession.of(spark), world.storage, retain_history=0))
    assert not world.storage.collection(f"{world.schema}.o").arrangements()
    for customer in (3, 400):
        world.insert("c", [(customer, "b")])
        world.step_exactly(customer)


def test_compaction_merges_it(spark: SparkSession, tmp_path: Path) -> None:
    world = arranged_world(spark, tmp_path)
    world.insert("o", [(8_000, None, None, None, None)])
    for step in range(5):
        world.insert("o", [(9_000 + step, 2, Decimal(step), None, None)])
        world.delete("o", [(step, step, Decimal(step), None, None)])
        world.step_exactly(step)
    assert len(log_of(arrangement_of(world)).files) >= 4
    list(compact(LazySession.of(spark), world.storage, retain_history=0))
    stored = log_of(arrangement_of(world))
    assert len(stored.files) == 1
    assert total_rows(stored.files) == 2_001
    customers = read_files(world.storage, stored.uri, stored.files, stored.schema)["customer"].to_pylist()
    assert customers == [*sorted(customers[:-1]), None], "files without bounds, for NULL is there, are sorted as well"
    world.insert("c", [(3, "b"), (4, "a")])
    world.step_exactly(9)


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
