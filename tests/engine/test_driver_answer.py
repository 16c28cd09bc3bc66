"""Queries over models' relations as they are now, answered on the driver as Spark does, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from benchmarks.asked import ListeningSession
from dbt_incremental_dd.relation.lazy_session import SessionMemory
from dbt_incremental_dd.runtime import driver_answer as module
from dbt_incremental_dd.runtime.driver_answer import driver_answer
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANSWERED = [
    "SELECT count(*) AS failures, count(*) != 0 AS should_warn FROM (SELECT k FROM {m} WHERE v IS NULL) t",
    "/* {{app: dbt}} */ WITH a AS (SELECT k AS f, count(*) AS n FROM {m} GROUP BY k) SELECT * FROM a WHERE n > 1",
    "SELECT a.k, b.s FROM {m} a LEFT JOIN {n} b ON a.k = b.k WHERE b.k IS NULL OR a.v > b.s",
    "SELECT k FROM {m} UNION SELECT k FROM {n}",
    "SELECT k FROM {m} EXCEPT ALL SELECT k FROM {n}",
    "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM {m}",
    "SELECT k, var_pop(v) AS w, sum(x) AS y FROM {m} GROUP BY k HAVING count(*) > 1",
    "SELECT * FROM {m} WHERE k NOT IN (SELECT k FROM {n} WHERE k IS NOT NULL) AND v NOT IN (1, 7)",
    "SELECT count(*) AS n FROM (SELECT * FROM {m} WHERE false LIMIT 10) t",
    "SELECT DISTINCT k FROM {m} WHERE EXISTS (SELECT 1 FROM {n} WHERE {n}.k = {m}.k)",
]
LEFT = [
    "SELECT * FROM {m} ORDER BY k",
    "SELECT * FROM {m} LIMIT 3",
    "SELECT 1 AS one",
    "SELECT * FROM {t}",
    "SELECT * FROM {schema}.nothing",
    "SELECT collect_list(k) AS l FROM {m}",
    "SELECT current_timestamp() AS now, k FROM {m}",
    "SELECT nothing FROM {m}",
    "INSERT INTO {m} SELECT * FROM {m}",
    "SELECT * FROM {m} WHERE rand() > 2",
    "SHOW TABLES",
]


class _Memory(SessionMemory):
    def __init__(self, spark: SparkSession) -> None:
        self._known = ListeningSession(spark).memory

    @property
    def settings(self) -> Mapping[str, str]:
        return self._known.settings

    @property
    def functions(self) -> frozenset[str]:
        return self._known.functions

    def relation_type(self, schema: str, name: str) -> str | None:
        return "view"


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> World:
    made = World(
        spark, tmp_path_factory.mktemp("w"), {"t": Table("k INT, v INT, x DOUBLE"), "u": Table("k INT, s INT")}
    )
    made.model("m", "SELECT * FROM {t}")
    made.model("n", "SELECT * FROM {u}")
    made.insert("t", [(1, 1, 0.5), (1, 1, 0.5), (2, None, 1.5), (None, 7, None), (3, 4, 2.5)])
    made.insert("u", [(1, 0), (2, 9), (2, 9), (None, 3)])
    made.step()
    made.delete("t", [(1, 1, 0.5)])
    made.insert("t", [(5, 5, 0.25)])
    made.step()
    return made


@pytest.mark.parametrize("sql", ANSWERED)
def test_it_is_spark_s_answer(spark: SparkSession, world: World, sql: str) -> None:
    names = {name: f"{world.schema}.{name}" for name in "mn"}
    session = ListeningSession(spark)
    session.memory = _Memory(spark)
    text = sql.format(**names) if "EXISTS" not in sql else sql.replace("{n}.k = {m}.k", "n.k = m.k").format(**names)
    found = driver_answer(session, world.storage, text)
    assert found is not None and not session.asked
    wanted = spark.sql(text)
    assert [c.name for c in found.schema] == wanted.columns
    assert Counter(map(repr, found.rows.to_pylist())) == Counter(map(repr, wanted.toArrow().to_pylist()))


@pytest.mark.parametrize("sql", LEFT)
def test_others_are_left_to_spark(spark: SparkSession, world: World, sql: str) -> None:
    session = ListeningSession(spark)
    session.memory = _Memory(spark)
    text = sql.format(schema=world.schema, **{name: f"{world.schema}.{name}" for name in "mnt"})
    assert driver_answer(session, world.storage, text) is None and not session.asked


def test_a_relation_that_may_be_another_is_left_to_spark(spark: SparkSession, world: World) -> None:
    """Nothing is known of the catalog."""
    assert driver_answer(ListeningSession(spark), world.storage, f"SELECT k FROM {world.schema}.m") is None


def test_an_open_session_is_asked(spark: SparkSession, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from dbt_incremental_dd.relation.lazy_session import LazySession

    monkeypatch.setattr(module, "_answer", lambda *_: pytest.fail("not on the driver"))
    assert driver_answer(LazySession.of(spark), world.storage, f"SELECT k FROM {world.schema}.m") is None
