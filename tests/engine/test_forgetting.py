"""Runs compact what changes much, under its window, so that they do not take longer with every day of history."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core import failpoints
from dbt_incremental_dd.core.errors import CommitConflict, FrontierError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.compact import forget
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.run_context import RunContext
from dbt_incremental_dd.runtime.shown import forget_published
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.arrow_reader import contents
from dbt_incremental_dd.trace.compact import compact_trace
from dbt_incremental_dd.trace.holds import hold, holds_of_models
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log, total_rows
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400_000
ROWS = 60


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    """Its models' rows change in each step; a run a day, and each keeps a day of history."""
    limits = Thresholds(history_rows=2 * ROWS)
    made = World(spark, tmp_path, {"t": Table("k INT, v INT"), "u": Table("k INT, l ARRAY<INT>")}, limits)
    made.model("m", "SELECT k, sum(v) AS v, count(*) AS n FROM {t} GROUP BY k")
    made.model("down", "SELECT n, sum(v) AS v FROM {m} GROUP BY n")
    made.model("lists", "SELECT k, l FROM {u} WHERE k % 2 = 0")
    made.model("intervals", "SELECT k, make_dt_interval(l[0]) AS i FROM {u}")
    made.insert("t", [(k, 0) for k in range(ROWS)])
    made.insert("u", [(k, [k]) for k in range(ROWS)])
    made.step()
    return made


def _day(world: World, rng: random.Random) -> None:
    world.time += DAY
    for name in ("t", "u"):
        rows = rng.sample(world.tables[name].rows, ROWS * 3 // 4)
        world.delete(name, rows)
        world.insert(name, [(k, [rng.randrange(99)] if name == "u" else rng.randrange(99)) for k, _ in rows])
    world.step()


def _log(world: World, name: str) -> Log:
    log = world.storage.collection(f"{world.schema}.{name}").log()
    assert log is not None
    return log


def test_updates_stay_in_proportion_to_rows(world: World) -> None:
    rng, most = random.Random(5), dict.fromkeys(("m", "lists"), 0)
    for _ in range(12):
        _day(world, rng)
        world.check()
        collection = Collection(world.storage, f"{world.schema}.m")
        assert collection.frontiers.since <= world.time - DAY, "a day can be read"
        assert collection.as_of(world.time - DAY).num_rows > 0 or collection.frontiers.since == 0
        most = {name: max(found, total_rows(_log(world, name).files)) for name, found in most.items()}
    assert all(found <= 8 * ROWS for found in most.values()), most
    assert _log(world, "m").frontiers.since > 0 and _log(world, "lists").frontiers.since > 0
    with pytest.raises(FrontierError, match="since"):
        Collection(world.storage, f"{world.schema}.m").as_of(1_001)


def test_what_somebody_has_still_to_read_is_kept(world: World) -> None:
    rng, place = random.Random(6), world.storage.collection(f"{world.schema}.m")
    begun = world.time
    hold(place, "page", begun, "a page", now() + DAY)
    for _ in range(5):
        _day(world, rng)
    assert Collection(world.storage, place.name).as_of(begun).num_rows == ROWS
    assert _log(world, "m").frontiers.since <= begun and _log(world, "lists").frontiers.since > begun


def test_no_session_is_opened_for_it(world: World) -> None:
    """What the driver cannot merge waits."""

    def never() -> Any:
        raise AssertionError("no session is needed")

    rng = random.Random(7)
    world.storage = type(world.storage)(world.storage.root)
    for _ in range(4):
        _day(world, rng)
    limits = Thresholds(history_rows=2 * ROWS)
    storage = type(world.storage)(world.storage.root, thresholds=limits)
    forgotten = {}
    for name in ("m", "lists", "intervals"):
        place = storage.collection(f"{world.schema}.{name}")
        log = place.log()
        assert log is not None
        forget_published(place)
        done = forget(Catalog(LazySession(never)), place, log, lambda: holds_of_models(storage))
        forgotten[name] = done.version > log.version
    assert forgotten == {"m": True, "lists": True, "intervals": False}


def test_another_writer_comes_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that would have compacted goes on."""

    def lost(*args: Any, **options: Any) -> Any:
        raise CommitConflict("another writer moved it first")

    monkeypatch.setattr("dbt_incremental_dd.runtime.compact.compact_trace", lost)
    rng = random.Random(8)
    for _ in range(4):
        _day(world, rng)
        world.check()
    assert _log(world, "m").frontiers.since == 1_001


@pytest.mark.parametrize("point", ["compaction: written", "commit: before", "commit: done"])
def test_a_run_that_ends_while_it_compacts(world: World, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Its change is there; the next run shows it, and compacts."""
    rng, compacting = random.Random(9), [False]
    compacts = compact_trace

    def noted(*args: Any, **options: Any) -> Any:
        compacting[0] = True
        return compacts(*args, **options)

    def reached(name: str) -> None:
        if compacting[0] and name == point:
            raise KeyboardInterrupt(name)

    monkeypatch.setattr("dbt_incremental_dd.runtime.compact.compact_trace", noted)
    monkeypatch.setattr(failpoints, "_watcher", reached)
    stopped = 0
    for _ in range(6):
        compacting[0] = False
        try:
            _day(world, rng)
        except KeyboardInterrupt:
            stopped += 1
    assert stopped
    monkeypatch.setattr(failpoints, "_watcher", None)
    world.step()
    world.check()
    _day(world, rng)
    world.check()
    assert _log(world, "m").frontiers.since > 1_001


def test_sources_do_so_too(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meta = {"envelope": "upsert", "key": "k", "order_by": "at", "path": "in", "format": "json"}
    spec = parse_source("s.t", "`s`.`t`", meta, {"k": "bigint", "v": "bigint", "at": "bigint"}, str(tmp_path))
    storage = Storage(str(tmp_path / "state"), thresholds=Thresholds(history_rows=2 * ROWS))
    (tmp_path / "in").mkdir()
    most, taken = 0, None
    for day in range(1, 9):
        rows = [{"k": k, "v": day * 100 + k, "at": day} for k in range(ROWS)]
        (tmp_path / "in" / f"{day}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        taken = Run(LazySession.of(spark), storage, f"run{day}", day * DAY, lambda line: None).source(spec)
        place = storage.collection("s.t")
        assert taken.log.version == place.log().version  # type: ignore[union-attr]
        assert sorted(contents(place, day * DAY)["v"].to_pylist()) == [row["v"] for row in rows]
        most = max(most, total_rows(taken.log.files))
    assert taken is not None and taken.log.frontiers.since == 7 * DAY and most <= 7 * ROWS
    monkeypatch.setattr(RunContext, "forget", lambda *arguments: pytest.fail("nothing is new"))
    again = Run(LazySession.of(spark), storage, "again", 9 * DAY, lambda line: None).source(spec)
    assert again.rows == 0
