"""Runs: what is skipped, what is rebuilt, and what downstream sees of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import FrontierError, UnsupportedSQL
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime import relation
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.holds import hold, release
from tests.engine.random_rows import A, B, row_a, row_b, shuffle
from tests.oracle import Table, World, changed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    """Two tables with rows, and a chain of two models."""
    world = World(spark, tmp_path, {"a": Table(A), "b": Table(B)})
    rng = random.Random(3)
    world.insert("a", [row_a(rng) for _ in range(12)])
    world.insert("b", [row_b(rng) for _ in range(6)])
    world.model("m", "SELECT k, count(*) AS n, sum(v) AS s, max(v) AS hi FROM {a} GROUP BY k")
    world.model("j", "SELECT m.k, m.n, b.w FROM {m} m LEFT JOIN {b} b ON m.k = b.k")
    return world


def text_of(spark: SparkSession, view: str) -> str:
    """The query that a view is."""
    found = {row[0]: row[1] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {view}").collect()}
    return str(found["View Text"])


def jobs_of(spark: SparkSession, work: Any) -> int:
    """How many Spark jobs ``work`` runs."""
    tracker = spark.sparkContext.statusTracker()
    group = f"counted-{random.random()}"
    spark.sparkContext.setJobGroup(group, "counted")
    try:
        work()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    return len(tracker.getJobIdsForGroup(group))


def test_nothing_changed_runs_no_job(world: World, spark: SparkSession) -> None:
    world.step()
    assert jobs_of(spark, lambda: world.spark.range(3).count()) > 0, "the counter counts"
    outcomes: dict[str, Any] = {}
    assert jobs_of(spark, lambda: outcomes.update(world.step())) == 0
    assert {o.strategy for o in outcomes.values()} == {"skip"}
    assert world.storage.collection(f"{world.schema}.m").log().frontiers.upper == world.time + 1  # type: ignore[union-attr]
    world.check()


def test_same_time_again_changes_nothing(world: World) -> None:
    world.step()
    log = world.storage.collection(f"{world.schema}.m").log()
    world.time -= 1
    assert {o.strategy for o in world.step().values()} == {"skip"}
    again = world.storage.collection(f"{world.schema}.m").log()
    assert log and again and log.files == again.files


def test_changed_sql_sends_downstream_the_difference(world: World) -> None:
    rng = random.Random(5)
    world.step()
    world.model("m", "SELECT k, count(*) AS n, sum(v) AS s, max(v) AS hi FROM {a} WHERE k <> 1 GROUP BY k")
    outcomes = world.step()
    assert outcomes["m"].strategy == "rebuild" and outcomes["j"].strategy == "delta"
    assert outcomes["m"].rows_removed == 2 and outcomes["m"].rows_added == 0, "the groups 1 and NULL"
    world.check()
    shuffle(world, rng)
    world.step()
    world.check()


def test_changed_columns_start_a_new_history(world: World) -> None:
    rng = random.Random(6)
    world.step()
    world.model("m", "SELECT k, count(*) AS n, min(v) AS lo FROM {a} GROUP BY k")
    world.step()
    world.check()
    shuffle(world, rng)
    world.step()
    world.check()


def test_full_refresh_of_the_same_is_no_change(world: World) -> None:
    world.step()
    outcomes = world.step(full_refresh=True)
    assert {(o.strategy, o.rows_added, o.rows_removed) for o in outcomes.values()} == {("rebuild", 0, 0)}
    world.check()


def test_rebuilt_state_goes_on_by_deltas(world: World) -> None:
    rng = random.Random(8)
    world.step()
    world.step(full_refresh=True)
    for _ in range(2):
        shuffle(world, rng)
        world.step()
        world.check()


def test_a_rebuild_over_an_emptied_input_forgets_what_was_stored(world: World) -> None:
    world.models.clear()
    world.model("m", "SELECT a.k, x.n FROM {a} a JOIN (SELECT k, count(*) AS n FROM {b} GROUP BY k) x ON x.k = a.k")
    world.model("t", "SELECT x.k FROM (SELECT k FROM {b} ORDER BY k LIMIT 3) x CROSS JOIN {a}")
    world.step()
    emptied = list(world.tables["b"].rows)
    world.delete("b", emptied)
    world.step()
    list(compact(LazySession.of(world.spark), world.storage, retain_history=0))
    assert {o.strategy for o in world.step(full_refresh=True).values()} == {"rebuild"}
    world.check()
    world.insert("a", world.tables["a"].rows[:3])
    assert {o.strategy for o in world.step().values()} == {"delta"}
    world.check()
    world.insert("b", emptied[:4])
    assert {o.strategy for o in world.step().values()} == {"delta"}
    world.check()


def test_state_beyond_the_output_is_taken_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that dies between its operators' commits and its output's leaves nothing that the next one counts twice."""
    from dbt_incremental_dd.runtime import work

    rng = random.Random(9)
    world.step()
    shuffle(world, rng)
    world.insert("a", [row_a(rng) for _ in range(5)])
    versions = _inner_versions(world)
    with monkeypatch.context() as patch:
        patch.setattr(work.Work, "_commit", _dies)
        with pytest.raises(KeyboardInterrupt):
            world.step()
    assert _inner_versions(world) > versions, "the operators had committed"
    for _ in range(2):
        world.step()
        world.check()
        shuffle(world, rng)


def _dies(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def _inner_versions(world: World) -> list[int]:
    place = world.storage.collection(f"{world.schema}.m")
    logs = [place.inner(name).log() for name in ("reduce1.sums", "reduce1.values")]
    return [log.version for log in logs if log is not None]


def test_fallback_error_names_model_and_reason(world: World) -> None:
    counted = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT x.i + y.i FROM n x JOIN n y ON x.i = y.i WHERE x.i < 3)"
    )
    world.model("f", f"{counted} SELECT n.i, b.w FROM n JOIN {{b}} b ON b.k = n.i")
    with pytest.raises(UnsupportedSQL, match=rf"{world.schema}\.f"):
        world.step(fallback="error")


def test_refusals_name_the_construct(world: World) -> None:
    world.model("r", "SELECT rand() AS x FROM {a}")
    with pytest.raises(UnsupportedSQL, match=r"rand\(\).*line 1"):
        world.step()
    assert world.storage.collection(f"{world.schema}.r").log() is None


def test_what_spark_does_not_accept_is_told_in_a_line(world: World) -> None:
    world.model("r", "SELECT no_such FROM {a}")
    with pytest.raises(UnsupportedSQL, match=rf"{world.schema}\.r: .*`no_such` cannot be resolved") as raised:
        world.step()
    assert len(str(raised.value).splitlines()) == 2


def test_as_of_stays_the_same_through_compaction(world: World, spark: SparkSession) -> None:
    from dbt_incremental_dd.api import Collection

    rng = random.Random(11)
    world.step()
    for _ in range(4):
        shuffle(world, rng)
        world.step()
    collection = Collection(world.storage, f"{world.schema}.m")
    times = range(world.time - 2, world.time + 1)
    before = {t: _rows(collection, t) for t in times}
    list(compact(LazySession.of(spark), world.storage, None, 2))
    assert collection.frontiers.since == world.time - 2
    assert {t: _rows(collection, t) for t in times} == before
    with pytest.raises(FrontierError, match="since"):
        collection.as_of(world.time - 3)
    world.check()
    shuffle(world, rng)
    world.step()
    world.check()


def test_compaction_leaves_what_somebody_has_still_to_read(world: World, spark: SparkSession) -> None:
    from dbt_incremental_dd.api import Database

    rng = random.Random(13)
    world.step()
    begun = world.time
    place = world.storage.collection(f"{world.schema}.m")
    hold(place, "page", begun, "subscription page", now() + 3_600_000)
    hold(place, "gone", begun - 1, "a reader that has gone", now() - 1)
    for _ in range(3):
        shuffle(world, rng)
        world.step()
    database = Database(world.storage.root)
    collection = database[place.name]
    before = _rows(collection, begun)
    lines = {line.split(":")[0]: line for line in compact(LazySession.of(spark), world.storage, None, 1)}
    assert lines[place.name].endswith("held back by subscription page")
    assert collection.frontiers.since == begun and _rows(collection, begun) == before
    release(place, "page")
    release(place, "page")
    list(compact(LazySession.of(spark), world.storage, None, 1))
    assert collection.frontiers.since == world.time - 1


def test_a_model_that_lags_holds_its_inputs_back(world: World, spark: SparkSession) -> None:
    from dbt_incremental_dd.api import Database

    world.step()
    begun, inputs = world.time, [f"{world.schema}.{name}" for name in world.tables]
    slow = world.models.pop("m")
    del world.models["j"]
    world.model("quick", "SELECT k FROM {a} UNION ALL SELECT k FROM {b}")
    for _ in range(2):
        world.insert("a", world.tables["a"].rows[:1])
        world.insert("b", world.tables["b"].rows[:1])
        world.step()
    list(compact(LazySession.of(spark), world.storage, None, 0))
    database = Database(world.storage.root)
    assert {name: database[name].frontiers.since for name in inputs} == dict.fromkeys(inputs, begun)
    assert database[inputs[0]].reclaimable(0).age == 0, "a sensor does not ask for what compaction cannot do"
    world.models["m"] = slow
    world.step()
    world.check("m")


def test_holds_on_what_is_gone_are_nobodys(world: World) -> None:
    from dbt_incremental_dd.api import Database

    world.step()
    world.insert("a", world.tables["a"].rows[:1])
    world.step()
    world.storage.remove(world.storage.collection(f"{world.schema}.a").uri)
    assert f"{world.schema}.a" not in {found.name for found in Database(world.storage.root).status()}


def _rows(collection: Any, t: int) -> list[str]:
    return sorted(str(row) for row in collection.as_of(t).to_pylist())


def test_changes_add_up(world: World) -> None:
    from dbt_incremental_dd.api import Collection

    rng = random.Random(12)
    world.step()
    collection = Collection(world.storage, f"{world.schema}.m")
    state = {str({**row, "dd_diff": 0}): row["dd_diff"] for row in collection.as_of().to_pylist()}
    start = collection.frontiers.last
    for _ in range(3):
        shuffle(world, rng)
        world.step()
    for row in collection.changes(after=start).to_pylist():
        row.pop("dd_time")
        diff, key = row["dd_diff"], str({**row, "dd_diff": 0})
        state[key] = state.get(key, 0) + diff
    now = {str({**row, "dd_diff": 0}): row["dd_diff"] for row in collection.as_of().to_pylist()}
    assert {key: n for key, n in state.items() if n} == now
    status = collection.status()
    assert status.rows == sum(now.values()) and status.change["strategy"] == "delta"


def test_the_delta_reads_only_new_files(world: World) -> None:
    world.step()
    log = world.storage.collection(f"{world.schema}.a").log()
    assert log is not None
    assert between(log.files, world.time, world.time + 1) == ()


def test_a_query_of_which_parts_cannot_stand_alone_is_compiled_quietly(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    world.model("q", "SELECT v FROM {a} x WHERE v < (SELECT max(y.w) FROM {b} y WHERE y.k = x.k)")
    world.step()
    assert "ERROR" not in capfd.readouterr().err


@pytest.mark.parametrize("dropped", [["m"], ["m__changes"], ["m", "m__changes"]], ids=" and ".join)
def test_dropped_relations_are_made_again(spark: SparkSession, tmp_path: Path, dropped: list[str]) -> None:
    world = World(spark, tmp_path, {"t": Table("k INT, v INT")})
    world.model("m", "SELECT k, sum(v) AS v FROM {t} GROUP BY k")
    for step in range(3):  # at first rows are only added, then some are replaced
        world.insert("t", [(step % 2, step), (step + 10, step)])
        world.step()
        world.check()
        for name in dropped:
            spark.sql(f"DROP VIEW {world.schema}.{name}")
    world.insert("t", [(1, 1)])
    world.step()
    world.check()
    assert spark.table(f"{world.schema}.m__changes").count() >= 8


@pytest.mark.parametrize("where", [None, "in_spark"], ids=["on the driver", "in Spark"])
def test_an_extreme_whose_equal_came_and_went_is_kept(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, where: str | None
) -> None:
    """One delta holds a row and its retraction, beside the retraction of the stored extreme."""
    thresholds = request.getfixturevalue(where) if where is not None else None
    world = World(spark, tmp_path, {"t": Table("k INT, v INT")}, thresholds)
    world.model("m", "SELECT k, min(v) AS lo, max(v) AS hi FROM {t} GROUP BY k")
    world.insert("t", [(1, 5), (1, 7), (1, 9), (2, 5), (2, 9)])
    world.step()
    world.check()
    for value in (5, 9):
        world.insert("t", [(1, value)])
        world.delete("t", [(1, value), (1, value)])
    world.insert("t", [(2, 5)])
    world.delete("t", [(2, 5)])
    world.step()
    world.check()
    assert changed(spark, world, "m") == {(1, 7, 7): 1, (2, 5, 9): 1}


def test_many_columns(spark: SparkSession, tmp_path: Path) -> None:
    """A log keeps bounds of more columns than Delta's default of 32: times and diffs come last."""
    columns = [f"c{i}" for i in range(40)]
    world = World(spark, tmp_path, {"wide": Table(", ".join(f"{column} INT" for column in columns))})
    world.model("copy", "SELECT * FROM {wide} WHERE c0 > 0")
    world.model("sums", "SELECT c0, sum(c39) AS s FROM {copy} GROUP BY c0")
    for step in range(3):
        world.insert("wide", [tuple(range(step + i, step + i + 40)) for i in range(3)])
        world.step(fallback="error")
        world.check()


def test_a_query_under_way_finds_files_that_its_view_can_sum_up(spark: SparkSession, tmp_path: Path) -> None:
    """Its text is read first, and the files of its folder are listed then: none may have come that take another sum."""
    world = World(spark, tmp_path, {"t": Table("k INT")}, Thresholds(summed_rows=0))
    world.model("m", "SELECT k FROM {t}")
    world.insert("t", [(1,), (2,)])
    world.step()
    shown = spark.sql(f"SHOW CREATE TABLE {world.schema}.m").head()
    query = spark.table(f"{world.schema}.m")
    world.insert("t", [(3,)])
    world.step()
    assert spark.sql(f"SHOW CREATE TABLE {world.schema}.m").head() == shown, "one more link shows it"
    live = Path(world.storage.collection(f"{world.schema}.m").uri.removeprefix("file://")) / "live"
    before = {path.name: sorted(file.name for file in path.iterdir()) for path in live.iterdir()}
    world.delete("t", [(1,)])
    world.insert("t", [(4,)])
    world.step()
    assert {name: sorted(file.name for file in (live / name).iterdir()) for name in before} == before
    assert sorted(query.collect()) == [(1,), (2,)], "the query that was analysed then"
    world.check()


def test_a_query_under_way_adds_up_files_that_are_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without links, as on object storage: a view's text that was read before a commit, and what it names after it,
    give the rows of before or those of after."""
    monkeypatch.setattr(relation.links, "link_all", lambda *_: 0)
    world = World(spark, tmp_path, {"t": Table("k INT")})
    world.model("m", "SELECT k FROM {t}")
    name = f"{world.schema}.m"
    steps: list[tuple[list[int], list[int]]] = [([1, 2], []), ([3], []), ([4, 4], [1]), ([5], [2, 4]), ([], [3, 4])]
    for inserted, deleted in steps:
        text = text_of(spark, name) if spark.catalog.tableExists(name) else None
        before = sorted(spark.table(name).collect()) if text else []
        world.insert("t", [(k,) for k in inserted])
        world.delete("t", [(k,) for k in deleted])
        world.step()
        world.check()
        after = sorted(spark.table(name).collect())
        assert text is None or sorted(spark.sql(text).collect()) in (before, after), text
