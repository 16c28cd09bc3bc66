"""A model all of whose rows are replaced: its contents are read without what has been retracted, its history with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.query.engine import QueryEngine
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.costs import Costs
from dbt_incremental_dd.runtime.relation_sql import as_of_sql, changes_sql
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.log import Log, total_rows
from dbt_incremental_dd.trace.log_loader import load
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = 12_000


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    made = World(spark, tmp_path, {"p": Table("v INT")})
    made.model("m", f"SELECT v, explode(sequence(1, {SIZE})) AS id FROM {{p}}")
    made.model("sums", "SELECT v, count(*) AS n, sum(id) AS s FROM {m} GROUP BY v")
    made.model("few", "SELECT id, v, x.v AS other FROM {m} JOIN {p} x USING (v) WHERE id % 4000 = 0")
    made.model("present", "SELECT v FROM {p} WHERE EXISTS (SELECT 1 FROM {m} x WHERE x.v = {p}.v)")
    made.model("absent", "SELECT x.v FROM {p} x LEFT JOIN {m} y ON x.v = y.v AND y.id = 7 WHERE y.id IS NULL")
    made.insert("p", [(1,)])
    made.step()
    return made


def _log(world: World) -> Log:
    log = world.storage.collection(f"{world.schema}.m").log()
    assert log is not None
    return log


def _replace(world: World, *values: int) -> None:
    world.delete("p", list(world.tables["p"].rows))
    world.insert("p", [(value,) for value in values])
    world.step()
    world.check()


def _read(world: World) -> tuple[int, bool]:
    """How many updates are read for the contents, and whether they are insertions only."""
    log = _log(world)
    files = log.summands(log.frontiers.last)
    return total_rows(files), all(file.inserts_only for file in files)


def _rows(collection: Collection, t: int) -> Counter[tuple[Any, ...]]:
    table = collection.as_of(t)
    return Counter({(row["id"], row["v"]): row["dd_diff"] for row in table.to_pylist()})


def test_only_what_is_there_is_read(world: World) -> None:
    collection = Collection(world.storage, f"{world.schema}.m")
    first = _rows(collection, world.time)
    history = {world.time: first}
    for values, read in (((2,), 1), ((2, 3), 2), ((4,), 1), ((), 0), ((5, 6), 2)):
        _replace(world, *values)
        history[world.time] = _rows(collection, world.time)
        assert _read(world) == (read * SIZE, True)
    assert total_rows(_log(world).files) == 10 * SIZE
    assert {t: _rows(collection, t) for t in history} == history and len(first) == SIZE
    summed: Counter[tuple[Any, ...]] = Counter()
    for row in collection.changes().to_pylist():
        summed[row["id"], row["v"]] += row["dd_diff"]
    assert +summed == history[world.time] and not -summed
    engine = QueryEngine(world.storage)
    for t, rows in history.items():
        query = f"SELECT count(*) AS n, count(DISTINCT v) AS d FROM {world.schema}.m"
        found = list(engine.select(query, [], t, engine.new_run(None)).batches)
        assert [row for batch in found for row in batch.to_pylist()] == [
            {"n": len(rows), "d": len({v for _, v in rows})}
        ]
        assert world.spark.sql(as_of_sql(world.storage, collection.name, t)).count() == len(rows)


def test_part_of_it_is_not_all(world: World) -> None:
    _replace(world, 1, 2)
    _replace(world, 1, 3)
    assert _read(world) == (4 * SIZE, False)
    _replace(world, 4)
    assert _read(world) == (7 * SIZE, False)


@pytest.fixture
def as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but first builds are recomputes."""
    monkeypatch.setattr(Costs, "choose", lambda *_: "recompute")


def test_few_rows_that_stay_are_told_to_nobody(spark: SparkSession, tmp_path: Path, as_one: None) -> None:
    world = World(spark, tmp_path, {"p": Table("v INT")})
    stays, repeated = SIZE // 20, 3
    ids = f"explode(flatten(array_repeat(sequence(1, {SIZE}), {repeated})))"
    world.model("m", f"SELECT id, IF(id <= {stays}, NULL, v) AS v FROM (SELECT v, {ids} AS id FROM {{p}})")
    world.model("sums", "SELECT v, count(*) AS n, sum(id) AS s FROM {m} GROUP BY v")
    world.insert("p", [(1,)])
    world.step()
    collection = Collection(world.storage, f"{world.schema}.m")
    history = {world.time: _rows(collection, world.time)}
    for values in ((2,), (3,), (4, 4), (5,), (6,), (7, 8)):
        before = world.time
        _replace(world, *values)
        history[world.time] = _rows(collection, world.time)
        changed = [(row["id"], row["v"], row["dd_diff"]) for row in collection.changes(before, world.time).to_pylist()]
        assert len({row[:2] for row in changed}) == len(changed)
        difference = Counter(history[world.time])
        difference.subtract(history[before])
        assert {row[:2]: row[2] for row in changed} == {row: n for row, n in difference.items() if n}
        by_spark = world.spark.sql(changes_sql(world.storage, collection.name, before, world.time))
        assert sorted(map(tuple, by_spark.select("id", "v", "dd_diff").collect()), key=str) == sorted(changed, key=str)
        assert _read(world) == (repeated * SIZE * len(values), True)
    assert {t: _rows(collection, t) for t in history} == history


def test_what_is_forgotten_before_a_base_is_not_written_again(world: World) -> None:
    for values in ((2,), (3,)):
        _replace(world, *values)
    log = _log(world)
    (base,) = log.summands(log.frontiers.last)
    list(compact(LazySession.of(world.spark), world.storage, None, 0))
    assert _log(world).files == (base,)
    world.check()


@pytest.mark.parametrize("ago", [0, 1, 2, 3])
def test_compaction(world: World, ago: int) -> None:
    """To before, at and after the time at which all was replaced."""
    collection = Collection(world.storage, f"{world.schema}.m")
    history = {world.time: _rows(collection, world.time)}
    for values in ((2,), (3,), (3, 4)):
        _replace(world, *values)
        history[world.time] = _rows(collection, world.time)
    for model in ("few", "sums", "present", "absent"):
        del world.models[model]
    since = sorted(history)[-1 - ago]
    list(compact(LazySession.of(world.spark), world.storage, None, _log(world).frontiers.last - since))
    assert collection.frontiers.since == since
    assert {t: _rows(collection, t) for t in history if t >= since} == {t: r for t, r in history.items() if t >= since}
    assert _read(world)[0] == 2 * SIZE
    for values in ((3, 5), (6,)):
        _replace(world, *values)
    assert _rows(collection, world.time) == Counter((id, 6) for id in range(1, SIZE + 1))


def test_small_files_are_not_merged_across_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would hold what has been retracted, and what has not."""
    monkeypatch.setattr("dbt_incremental_dd.trace.tiers.FAN", 1)
    monkeypatch.setattr("dbt_incremental_dd.trace.tiers.TIERS", 10**6)
    _replace(world, 2)
    log = _log(world)
    assert [file.first for file in log.files] == [world.time - 1, world.time, world.time]
    assert not log.mergeable()


def test_a_build_from_nothing_forgets_it(world: World) -> None:
    _replace(world, 2)
    base = world.time
    place = world.storage.collection(f"{world.schema}.m")
    log = _log(world)
    files = log.summands(log.frontiers.last)
    emptied = log.commit(Commit(replace_all=True, schema=log.schema, upper=5, since=0))
    assert emptied.summands(base) == ()
    again = emptied.commit(Commit(add=files, upper=base + 2))
    assert again.summands(base + 1) == files == load(place.name, place.trace_uri).summands(base)  # type: ignore[union-attr]
