"""Queries over relations of models and sources as they are now, answered on the driver as Spark does, or not at all."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.asked import ListeningSession
from dbt_incremental_dd.relation.lazy_session import LazySession, SessionMemory
from dbt_incremental_dd.runtime import driver_answer as module
from dbt_incremental_dd.runtime.driver_answer import driver_answer, driver_columns
from dbt_incremental_dd.runtime.shown import expect_published
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.intake import take_in
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import schema_of
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
    "SELECT 1 AS one, 1.50 AS d, 'a' AS s, DATE '2024-01-01' AS t, CAST(NULL AS INT) AS n",
    "SELECT TIMESTAMP '2024-07-01 10:00:00' AS t, TIMESTAMP_NTZ '2024-07-01 10:00:00' AS n, 1e0 AS d, true AS b",
    "SELECT * FROM (SELECT 1 AS a LIMIT 0) x JOIN (SELECT CAST(1 AS BIGINT) AS b LIMIT 1) y ON x.a = y.b",
    "WITH g AS (SELECT CAST(1 AS INT) AS k, 2 AS v UNION ALL SELECT CAST(NULL AS INT), 3) "
    "SELECT g.k, sum(v) AS s, count(*) AS n FROM g GROUP BY g.k UNION ALL SELECT 7, 8, 9",
    "WITH a AS (SELECT CAST(1 AS BIGINT) AS k UNION ALL SELECT 2), b AS (SELECT k FROM {m}) "
    "SELECT a.k, count(b.k) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k",
    "SELECT k FROM {m} WHERE k > 1 AND current_timestamp() > TIMESTAMP '2024-01-01' AND date(now()) = current_date()",
    "SELECT v FROM VALUES (1), (2) AS t(v) WHERE v > (SELECT min(k) FROM {n})",
]
ORDERED = [
    "SELECT * FROM {m} ORDER BY v, x",
    "SELECT * FROM {m} ORDER BY v, x LIMIT 100",
    "SELECT k, x FROM {m} ORDER BY 2 DESC, 1",
    "SELECT k AS y, v FROM {m} ORDER BY Y DESC NULLS FIRST, v LIMIT 3",
    "SELECT k, v FROM {m} ORDER BY v NULLS LAST LIMIT 2 OFFSET 1",
    "SELECT k FROM {n} UNION SELECT v FROM {m} ORDER BY k",
]
LEFT = [
    "SELECT * FROM {m} ORDER BY k + 1",
    "SELECT k FROM {m} ORDER BY v",
    "SELECT k FROM {m} SORT BY k",
    "SELECT NULL AS n",
    "SELECT k FROM {m} ORDER BY 2",
    "SELECT k FROM {m} ORDER BY 0",
    "SELECT * FROM {m} ORDER BY nothing",
    "SELECT k FROM (SELECT * FROM {m} ORDER BY v) t",
    "SELECT * FROM {t}",
    "SELECT * FROM {schema}.nothing",
    "SELECT collect_list(k) AS l FROM {m}",
    "SELECT nothing FROM {m}",
    "INSERT INTO {m} SELECT * FROM {m}",
    "SELECT * FROM {m} WHERE rand() > 2",
    "SHOW TABLES",
]


TEN = datetime.datetime(2024, 1, 1, 10, tzinfo=datetime.UTC)


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


def _no_source(schema: str, identifier: str) -> None:
    """No source is declared."""


@pytest.mark.parametrize("sql", ANSWERED + ORDERED)
def test_it_is_spark_s_answer(spark: SparkSession, world: World, sql: str) -> None:
    names = {name: f"{world.schema}.{name}" for name in "mn"}
    session = ListeningSession(spark)
    session.memory = _Memory(spark)
    text = sql.format(**names) if "EXISTS" not in sql else sql.replace("{n}.k = {m}.k", "n.k = m.k").format(**names)
    found = driver_answer(session, world.storage, text, _no_source)
    assert found is not None and not session.asked
    wanted = spark.sql(text)
    assert [c.name for c in found.schema] == wanted.columns
    rows, others = (list(map(repr, table.to_pylist())) for table in (found.rows, wanted.toArrow()))
    assert rows == others if sql in ORDERED else Counter(rows) == Counter(others)
    assert driver_columns(session, world.storage, text, _no_source) == schema_of(wanted.schema)


def test_some_rows_are_any(spark: SparkSession, world: World) -> None:
    session = ListeningSession(spark)
    session.memory = _Memory(spark)
    found = driver_answer(session, world.storage, f"SELECT * FROM {world.schema}.m LIMIT 3", _no_source)
    assert found is not None and found.rows.num_rows == 3 and not session.asked
    wanted = Counter(map(repr, spark.sql(f"SELECT * FROM {world.schema}.m").toArrow().to_pylist()))
    assert not Counter(map(repr, found.rows.to_pylist())) - wanted


@pytest.mark.parametrize("sql", LEFT)
def test_others_are_left_to_spark(spark: SparkSession, world: World, sql: str) -> None:
    session = ListeningSession(spark)
    session.memory = _Memory(spark)
    text = sql.format(schema=world.schema, **{name: f"{world.schema}.{name}" for name in "mnt"})
    assert driver_answer(session, world.storage, text, _no_source) is None and not session.asked


def test_a_relation_that_may_be_another_is_left_to_spark(spark: SparkSession, world: World) -> None:
    """Nothing is known of the catalog."""
    assert driver_answer(ListeningSession(spark), world.storage, f"SELECT k FROM {world.schema}.m", _no_source) is None


def test_an_open_session_is_asked(spark: SparkSession, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_compiled", lambda *_: pytest.fail("not on the driver"))
    assert driver_answer(LazySession.of(spark), world.storage, f"SELECT k FROM {world.schema}.m", _no_source) is None


class _Catalog(_Memory):
    """A catalog without the source, or with a view, or with something else of its name."""

    def __init__(self, spark: SparkSession, kind: str | None) -> None:
        super().__init__(spark)
        self._kind = kind

    def relation_type(self, schema: str, name: str) -> str | None:
        return self._kind


def test_a_source_shows_what_was_taken_in(spark: SparkSession, tmp_path: Path) -> None:
    """Before the first intake nothing, in the columns that are declared."""
    settings = {"path": "data", "format": "json", "envelope": "upsert", "key": "k"}
    spec = parse_source("s.t", "s.t", settings, {"k": "int", "at": "timestamp"}, str(tmp_path))
    storage, session = Storage(str(tmp_path / "state")), ListeningSession(spark)

    def answer(kind: str | None, sql: str = "SELECT k, at FROM s.t ORDER BY k") -> list[Any] | None:
        session.memory = _Catalog(spark, kind)
        found = driver_answer(session, storage, sql, lambda *name: spec if name == ("s", "t") else None)
        return None if found is None else [tuple(row.values()) for row in found.rows.to_pylist()]

    assert answer("", "SELECT * FROM s.t LIMIT 5") == [] and answer("", "SELECT count(*) AS n FROM s.t") == [(0,)]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.json").write_text('{"k": 2, "at": "2024-01-01T10:00:00Z"}\n{"k": 1}\n')
    take_in(LazySession.of(spark), storage, spec, 5, lambda line: None)
    assert answer("") == [(1, None), (2, TEN)] and not session.asked
    assert answer(None) is None and answer("view") is None and answer("", "SELECT * FROM s.other") is None
    expect_published(storage.collection("s.t"))
    assert answer("view") == [(1, None), (2, TEN)]
