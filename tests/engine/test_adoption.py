"""Models whose first contents are a table that is there: exact from then on, whatever changes, in whatever order."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dbt_incremental_dd
from dbt_incremental_dd.core import failpoints
from dbt_incremental_dd.core.errors import AdoptionError, ConfigError, FrontierError
from dbt_incremental_dd.core.manifest import Adopted, ModelManifest
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime import adoption_check
from dbt_incremental_dd.runtime.adopt import Adopt, parse_adopt
from dbt_incremental_dd.runtime.explain import explain_model
from dbt_incremental_dd.runtime.verify import verify_model
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "k INT, s STRING, v BIGINT, d DECIMAL(10,2)"
LATE = {
    "summed": "SELECT k, count(*) AS n, sum(v) AS v, avg(d) AS mean, max(s) AS top FROM {a} GROUP BY k",
    "joined": "SELECT a.k, sum(a.v * b.v) AS v, count(*) AS n FROM {a} a JOIN {b} b ON a.k = b.k GROUP BY a.k",
    "outer_joined": "SELECT a.k, a.s, n FROM {a} a LEFT JOIN (SELECT k, count(*) AS n FROM {b} GROUP BY k) b"
    " ON a.k = b.k",
    "full_joined": "SELECT x.k, y.k AS other, n, m FROM (SELECT k, count(v) AS n FROM {a} GROUP BY k) x"
    " FULL JOIN (SELECT k, min(d) AS m FROM {b} GROUP BY k) y ON x.k = y.k",
    "different": "SELECT DISTINCT s, v % 3 AS rest FROM {a} UNION ALL SELECT DISTINCT s, v % 2 FROM {b}",
    "except": "SELECT k, s FROM {a} EXCEPT ALL SELECT k, s FROM {b}",
    "nested": "SELECT n, count(*) AS groups FROM (SELECT k, count(*) AS n FROM {a} GROUP BY k) GROUP BY n",
    "overall": "SELECT count(*) AS n, sum(v) AS v, max(d) AS top FROM {b}",
    "numbered": "SELECT k, v, sum(v) OVER (PARTITION BY k ORDER BY v) AS running FROM (SELECT DISTINCT k, v FROM {a})",
}
"""States are built when they are needed."""
AT_ONCE = {
    "first_of_each": "SELECT k, v + 1 AS next FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC, s, d)"
    " AS place FROM {a}) WHERE place = 1",
    "highest": "SELECT k, v FROM {b} ORDER BY v DESC, k LIMIT 4",
    "floats": "SELECT k, round(sum(CAST(v AS DOUBLE)), 3) AS v FROM {b} GROUP BY k",
}
"""A state might disagree with the adopted rows: the first change builds the output with it."""
STATELESS = {
    "ranked": "SELECT k, v, rank() OVER (ORDER BY v) AS r FROM {b}",
    "without": "SELECT k, v FROM {a} a WHERE NOT EXISTS (SELECT 1 FROM {b} b WHERE b.k = a.k AND b.v > 3)",
}


class Rounds:
    """Random rows that come and go: few keys, NULLs, equal rows."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)

    def change(self, name: str, most: int) -> None:
        """Some rows come, and some that are there go."""
        table = self.world.tables[name]
        self.world.insert(name, [self._row() for _ in range(self.rng.randint(1, most))])
        self.world.delete(name, self.rng.sample(table.rows, min(len(table.rows), self.rng.randint(0, most // 2))))

    def _row(self) -> tuple[Any, ...]:
        rng = self.rng
        cents = rng.choice([None, 0, 5, 250, -199])
        d = None if cents is None else Decimal(cents) / 100
        return (
            rng.choice([None, 1, 2, 3, 4, 5, 6]),
            rng.choice([None, "a", "b", "é"]),
            rng.choice([None, 0, 1, 3, 7]),
            d,
        )


def adopted_world(
    spark: SparkSession, folder: Path, models: dict[str, str], thresholds: Thresholds | None = None, **adopt: Any
) -> World:
    """Models over tables ``a``, ``b`` with rows, each taken over from a table of its own name that Spark has made."""
    world = World(spark, folder, {name: Table(DDL) for name in "ab"}, thresholds)
    rounds = Rounds(world, 5)
    for name in "ab":
        rounds.change(name, 40)
    for name, sql in models.items():
        world.model(name, sql)
        world.batch(name).write.saveAsTable(f"{world.schema}.{name}")
    outcomes = world.step(adopt=Adopt(**adopt))
    assert {one.strategy for one in outcomes.values()} == {"adopt"}
    return world


def manifest(world: World, name: str) -> ModelManifest:
    """The model's."""
    place = world.storage.collection(f"{world.schema}.{name}")
    log = place.log()
    assert log is not None
    found = place.read_manifest(log.manifest)
    assert isinstance(found, ModelManifest)
    return found


def test_every_change_after_it_is_exact(spark: SparkSession, tmp_path: Path) -> None:
    models = {name: sql for name, sql in (LATE | AT_ONCE | STATELESS).items() if name != "different"}
    world = adopted_world(spark, tmp_path, models, verify="whole")
    world.check()
    assert {name for name in models if manifest(world, name).unbuilt} == {*LATE} - {"different"}
    rounds = Rounds(world, 7)
    for step, changed in enumerate(["a", "ab"]):
        for name in changed:
            rounds.change(name, 8)
        outcomes = world.step(strategy="delta")
        world.check()
        if not step:
            assert {outcomes[name].strategy for name in models if name not in AT_ONCE} <= {"delta", "skip"}
            assert {outcomes[name].strategy for name in AT_ONCE} <= {"rebuild", "skip"}
    assert not any(manifest(world, name).unbuilt for name in models)


def test_states_are_built_in_spark_too(spark: SparkSession, tmp_path: Path, in_spark: Thresholds) -> None:
    models = {name: LATE[name] for name in ("summed", "nested")}
    world = adopted_world(spark, tmp_path, models, in_spark, verify="none")
    Rounds(world, 9).change("a", 8)
    world.step(strategy="delta")
    world.check()


def test_a_change_builds_the_states_that_it_comes_to(spark: SparkSession, tmp_path: Path) -> None:
    """A union's other branch is not looked at; a join's other side is."""
    world = adopted_world(spark, tmp_path, {name: LATE[name] for name in ("different", "outer_joined")}, verify="none")
    assert len(manifest(world, "different").unbuilt) == 2
    world.insert("a", [(1, "a", 5, None)])
    world.step(strategy="delta")
    world.check()
    assert len(manifest(world, "different").unbuilt) == 1
    assert manifest(world, "different").behind
    assert not manifest(world, "outer_joined").unbuilt
    left = explain_model(LazySession.of(spark), world.storage, f"{world.schema}.different")
    assert left.count("built by the first run that needs it") == 1
    world.step()
    world.insert("b", [(1, "new", 5, None)])
    assert {one.strategy for one in world.step(strategy="delta").values()} == {"delta"}
    world.check()
    assert not manifest(world, "different").behind


GROUPED = "SELECT k, count(*) AS n, sum(v) AS v FROM {a} GROUP BY k"


def adopting(spark: SparkSession, folder: Path, sql: str, table: str) -> World:
    """A model over 60 rows of ``a``, and a table ``theirs`` made by ``table`` over its answer ``answer``."""
    world = World(spark, folder, {"a": Table(DDL)})
    world.insert("a", [(i % 20, "abc"[i % 3], i, None) for i in range(60)] + [(None, None, 1, None)])
    world.model("m", sql)
    world.batch("m").createOrReplaceTempView("answer")
    spark.sql(f"CREATE TABLE {world.schema}.theirs AS {table}")
    spark.catalog.dropTempView("answer")
    return world


def from_theirs(world: World, verify: str = "sample") -> Adopt | None:
    """The config, as a project writes it."""
    return parse_adopt("m", {"from": f"{world.schema}.theirs", "verify": verify})


def is_nothing_stored(world: World) -> bool:
    """Whether nothing is there of the model, neither rows nor files of them."""
    place = world.storage.collection(f"{world.schema}.m")
    return place.log() is None and not list(Path(place.uri).rglob("*.parquet"))


@pytest.mark.parametrize(
    ("sql", "table", "told"),
    [
        (GROUPED, "SELECT k, n, v + if(k = 3, 1, 0) AS v FROM answer", "missing: (3, 3, 69); unexpected: (3, 3, 70)"),
        (GROUPED, "SELECT * FROM answer WHERE k IS NOT NULL", "1 rows differ; missing: (None, 1, 1)"),
        (GROUPED, "SELECT * FROM answer UNION ALL SELECT * FROM answer WHERE k = 7", "unexpected: (7, 3, 81)"),
        ("SELECT count(*) AS n FROM {a}", "SELECT n + 1 AS n FROM answer", "missing: (61,); unexpected: (62,)"),
    ],
    ids=["another value", "a row too few", "a row twice", "without keys"],
)
def test_wrong_rows_are_refused(spark: SparkSession, tmp_path: Path, sql: str, table: str, told: str) -> None:
    world = adopting(spark, tmp_path, sql, table)
    for verify in ("sample", "whole"):
        with pytest.raises(AdoptionError, match="its rows are not the query's") as raised:
            world.step(adopt=from_theirs(world, verify))
        assert told in str(raised.value)
        assert is_nothing_stored(world)
    assert world.step()["m"].strategy == "initial"
    world.check()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("SELECT k, n FROM answer", "not in the table: v"),
        ("SELECT *, 1 AS w FROM answer", "not in the query: w"),
        ("SELECT k, CAST(n AS STRING) AS n, v FROM answer", "of other types: n (STRING in place of BIGINT)"),
        ("SELECT CAST(k AS BIGINT) AS k, n, v FROM answer", "of other types: k (BIGINT in place of INT)"),
    ],
    ids=["too few", "too many", "another type", "a wider one"],
)
def test_other_columns_are_refused(spark: SparkSession, tmp_path: Path, table: str, told: str) -> None:
    world = adopting(spark, tmp_path, GROUPED, table)
    with pytest.raises(ConfigError, match="its columns are not the query's") as raised:
        world.step(adopt=from_theirs(world))
    assert told in str(raised.value)
    assert is_nothing_stored(world)


def test_columns_in_another_order_and_narrower_ones_are_taken(spark: SparkSession, tmp_path: Path) -> None:
    world = adopting(
        spark, tmp_path, GROUPED, "SELECT CAST(n AS SMALLINT) AS N, v, CAST(k AS TINYINT) AS k FROM answer"
    )
    outcome = world.step(adopt=from_theirs(world))["m"]
    world.check()
    theirs = f"{world.schema}.theirs"
    assert outcome.why == f"adopted from {theirs}, verified by a sample: the rows of 21 values of k"
    assert (outcome.rows_added, outcome.rows_removed) == (21, 0)
    explained = explain_model(LazySession.of(spark), world.storage, f"{world.schema}.m")
    assert f"Adopted from {theirs}, verified by a sample" in explained
    status = dbt_incremental_dd.open(world.storage.root)[f"{world.schema}.m"].status()
    assert status.adopted == outcome.why
    assert spark.table(theirs).count() == 21


def test_rows_that_nobody_verified_are_found_and_corrected(spark: SparkSession, tmp_path: Path) -> None:
    world = adopting(spark, tmp_path, GROUPED, "SELECT * FROM answer WHERE k <> 5")
    world.step(adopt=from_theirs(world, "none"))
    name, began = f"{world.schema}.m", world.time
    assert manifest(world, "m").adopted == Adopted(f"{world.schema}.theirs", began, "")
    found = verify_model(spark, world.storage, name)
    assert (found.missing, found.unexpected) == (2, 0)
    with pytest.raises(FrontierError):
        dbt_incremental_dd.open(world.storage.root)[name].as_of(began - 1)
    assert world.step(full_refresh=True, adopt=from_theirs(world, "none"))["m"].strategy == "rebuild"
    world.check()
    assert manifest(world, "m").adopted is None
    assert world.step(adopt=from_theirs(world))["m"].strategy == "skip"


def test_what_cannot_be_adopted_is_told(spark: SparkSession, tmp_path: Path) -> None:
    world = adopting(spark, tmp_path, GROUPED, "SELECT * FROM answer")
    with pytest.raises(ConfigError, match="no_such cannot be adopted"):
        world.step(adopt=Adopt(f"{world.schema}.no_such"))
    assert world.step(adopt=Adopt())["m"].strategy == "initial", "there is no table of its own name"


def test_a_sample_is_of_some_values_and_finds_many_wrong_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption_check, "_VALUES", 30)
    world = World(spark, tmp_path, {"a": Table(DDL)})
    world.insert("a", [(i, None, i, None) for i in range(300)])
    world.model("m", GROUPED)
    theirs = world.batch("m")
    theirs.createOrReplaceTempView("stale")
    spark.sql("SELECT * FROM stale WHERE k < 200").createOrReplaceTempView("wrong")
    with pytest.raises(AdoptionError, match="its rows are not the query's"):
        world.step(adopt=Adopt("wrong"))
    outcome = world.step(adopt=Adopt("stale"))["m"]
    found = re.search(r"the rows of (\d+) values of k", outcome.why)
    assert found is not None and 20 < int(found[1]) < 120
    world.check()


def test_nothing_is_adopted_too(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path, {"a": Table(DDL)})
    world.model("m", GROUPED)
    world.batch("m").createOrReplaceTempView("empty")
    assert world.step(adopt=Adopt("empty"))["m"].strategy == "adopt"
    world.insert("a", [(1, None, 2, None), (1, None, 3, None)])
    assert world.step(adopt=Adopt("empty"))["m"].strategy == "delta"
    world.check()


def test_a_recursion_is_adopted_unverified(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path, {"e": Table("x INT, y INT")})
    world.insert("e", [(1, 2), (2, 3), (3, 1), (5, 6)])
    world.model(
        "m",
        "WITH RECURSIVE r(x, y) AS (SELECT x, y FROM {e} UNION SELECT r.x, e.y FROM r JOIN {e} e"
        " ON e.x = r.y) SELECT x, y FROM r",
    )
    pairs = [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)] + [(5, 6)]
    spark.createDataFrame(pairs, "x INT, y INT").createOrReplaceTempView("reached")
    with pytest.raises(ConfigError, match="a recursion cannot be verified"):
        world.step(adopt=Adopt("reached"))
    world.step(adopt=Adopt("reached", "none"))
    world.insert("e", [(6, 1)])
    assert world.step()["m"].strategy == "rebuild"
    assert spark.table(f"{world.schema}.m").count() == 9 + 4 + 3


@pytest.mark.parametrize("asked", [3, {"of": "x"}, {"verify": "some"}, {"from": ["x"]}], ids=str)
def test_other_settings_are_refused(asked: object) -> None:
    with pytest.raises(ConfigError, match=r"model m: adopt"):
        parse_adopt("m", asked)


def test_settings() -> None:
    assert parse_adopt("m", None) is None
    assert parse_adopt("m", False) is None
    assert parse_adopt("m", True) == Adopt("", "sample")
    assert parse_adopt("m", "a.b") == Adopt("a.b", "sample")
    assert parse_adopt("m", {"verify": "whole"}) == Adopt("", "whole")


class Ended(BaseException):
    """The process ends here."""


def test_a_run_that_is_ended_has_adopted_nothing_or_all(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each point that it reaches, and at each point of the first change after it, where states are built."""
    world = adopting(spark, tmp_path, LATE["nested"].replace("{b}", "{a}"), "SELECT * FROM answer")
    spark.sql(f"ALTER TABLE {world.schema}.theirs RENAME TO {world.schema}.m")

    def points() -> set[str]:
        """A run is ended at each point that it reaches, and another one goes on, until one comes to its end."""
        passed: set[str] = set()

        def end(point: str) -> None:
            if point not in passed:
                passed.add(point)
                raise Ended

        with monkeypatch.context() as patched:
            patched.setattr(failpoints, "_watcher", end)
            for _ in range(30):
                try:
                    world.run_only("m", adopt=Adopt(), strategy="delta")
                except Ended:
                    continue
                return passed
        raise AssertionError(passed)

    world.step_tables()
    ended = points()
    assert {"model: written", "commit: before", "table: aside", "table: replaced"} <= ended
    world.check()
    assert manifest(world, "m").adopted is not None
    world.insert("a", [(3, "x", 1, None), (99, "x", 1, None)])
    world.step_tables()
    ended = points()
    assert {"state: written", "state: committed", "model: written"} <= ended
    world.check()
    assert not manifest(world, "m").unbuilt
