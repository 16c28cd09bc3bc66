"""Syntax that few queries have is exact in every run."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.engines import IN_SPARK
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "id INT, k INT, v BIGINT, ts TIMESTAMP"
OVER = "PARTITION BY k ORDER BY ts RANGE BETWEEN"
FRAMES = (
    f"SELECT id, sum(v) OVER ({OVER} INTERVAL 1 DAY 2 HOURS PRECEDING AND CURRENT ROW) AS x FROM {{t}}",
    f"SELECT id, count(*) OVER ({OVER} INTERVAL '1 2' DAY TO HOUR PRECEDING AND INTERVAL 1 DAY 1 HOUR FOLLOWING) "
    "AS x FROM {t}",
)
TABLES = (
    "TABLE {t}",
    "TABLE {t} ORDER BY ts, id LIMIT 2",
    "WITH x AS (TABLE {t}) SELECT k, count(*) AS n FROM x GROUP BY k",
    "TABLE {t} UNION ALL TABLE {t}",
)


def test_frames_of_intervals_and_table_queries(spark: SparkSession, tmp_path: Path) -> None:
    """Models by TABLE are kept by deltas; frames of several units have at least a reason that can be read."""
    world = World(spark, tmp_path, {"t": Table(DDL)})
    schema = schema_of(spark.createDataFrame([], DDL).schema)
    for i, sql in enumerate((*FRAMES, *TABLES)):
        world.model(f"m{i}", sql)
        reasons = compile_model(
            LazySession.of(spark), "m", parsed(sql.replace("{t}", "t")), {"t": Input("t", schema)}
        ).plan.fallbacks
        assert all(len(reason.split()) > 2 and "()" not in reason for reason in reasons), reasons
        assert sql in FRAMES or not reasons, reasons
    start = datetime(2024, 1, 1, 10)
    rows = [(i, i % 2, i, start + i * timedelta(hours=13)) for i in range(6)]
    world.insert("t", [*rows, (9, 1, None, None)])
    for step in range(3):
        failures = world.step_and_check_each(threads=3)
        assert not failures, "\n\n".join([f"step {step}", *failures])
        world.delete("t", [rows[step]])
        world.insert("t", [(10 + step, step, 1, start + timedelta(hours=26 * step))])


def exact(world: World) -> None:
    """One run, and each model compared."""
    world.step()
    world.check()


ON = (
    "x.k = y.k AND {item}.k NOT IN (SELECT k FROM {{b}})",
    "x.v = y.v OR {item}.k NOT IN (SELECT k FROM {{b}})",
    "NOT (x.v = y.v AND {item}.k IN (SELECT k FROM {{b}}))",
    "x.v = y.v AND ({item}.v > 1 OR {item}.k NOT IN (SELECT k FROM {{b}}))",
)
"""Conditions of a join of x and y: conjuncts that Spark pushes down, and others."""


def not_in_world(spark: SparkSession, folder: Path) -> World:
    """Both columns of ``a`` have NULLs; so has ``b`` at first."""
    world = World(spark, folder, {"a": Table("k INT, v INT"), "b": Table("k INT")})
    world.insert("a", [(1, 1), (2, 1), (None, 2), (3, None), (None, None)])
    world.insert("b", [(1,), (None,)])
    return world


def check_not_in(world: World) -> None:
    """After a first load, without NULLs in the list, and with an empty list."""
    exact(world)
    world.delete("b", [(1,), (None,)])
    world.insert("b", [(2,)])
    exact(world)
    world.delete("b", [(2,)])
    exact(world)


def test_not_in_in_on_is_what_spark_makes_of_it(spark: SparkSession, tmp_path: Path) -> None:
    """A NULL in the list counts where Spark pushes the condition down, and nowhere else."""
    world = not_in_world(spark, tmp_path)
    inner, outer = product(["INNER"], "xy", ON), product(["LEFT", "RIGHT", "FULL"], "xy", ON[:1])
    for number, (side, item, on) in enumerate((*inner, *outer)):
        join = f"{{a}} x {side} JOIN {{a}} y ON {on.format(item=item)}"
        world.model(f"m{number}", f"SELECT x.k, x.v, y.k AS other, y.v AS more FROM {join}")
    check_not_in(world)


def test_null_in_a_query_is_null_even_if_the_list_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    world = not_in_world(spark, tmp_path)
    world.model("value", "SELECT k, NULL IN (SELECT k FROM {b}) AS i, (NULL) NOT IN (SELECT k FROM {b}) AS n FROM {a}")
    world.model("typed", "SELECT k FROM {a} WHERE CAST(NULL AS INT) NOT IN (SELECT b.k FROM {b} b WHERE b.k = v)")
    check_not_in(world)


STARS = (
    "SELECT * EXCEPT (data.f) FROM {t} t",
    "SELECT * EXCEPT (t.f, id) FROM {t} t",
    "SELECT t.* EXCEPT (data.s.g) FROM {t} t",
    "SELECT data.* EXCEPT (s) FROM {t} t",
    "SELECT t.data.* EXCEPT (s.g) FROM {t} t",
    "SELECT id, data.s.* FROM {t}",
    "SELECT * EXCEPT (x.k, y.v) FROM {a} x JOIN {a} y ON x.k = y.v",
    "SELECT k, 2 IN (*) AS i, 2 NOT IN (1, a.*) AS n FROM {a} a",
    "SELECT k FROM {a} WHERE 2 IN (*)",
    "SELECT k, CASE WHEN v IN (*, 3) THEN coalesce(*) END AS c, array(* EXCEPT (k)) AS r, hash(*) AS h FROM {a}",
    "SELECT count(*) AS n, count(DISTINCT *) AS d FROM {a}",
    "SELECT k, count(*) OVER (PARTITION BY v) AS n, struct(*) AS s FROM {a}",
)


def test_stars_and_what_they_leave_out(spark: SparkSession, tmp_path: Path) -> None:
    """``f`` is a column, and a field of another one."""
    tables = {"t": Table("id INT, f INT, data STRUCT<f: INT, s: STRUCT<g: INT, h: INT>>"), "a": Table("k INT, v INT")}
    world = World(spark, tmp_path, tables)
    for number, sql in enumerate(STARS):
        world.model(f"m{number}", sql)
    world.insert("t", [(1, 2, (3, (4, 5))), (2, None, (3, (None, 5))), (3, 3, None)])
    world.insert("a", [(1, 2), (2, 3), (None, 2)])
    exact(world)
    world.delete("t", [(1, 2, (3, (4, 5)))])
    world.delete("a", [(1, 2)])
    world.insert("a", [(2, None), (1, 3)])
    exact(world)


def test_a_column_called_all(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes GROUP BY ALL and ORDER BY ALL for this column."""
    world = World(spark, tmp_path, {"t": Table("k INT, v INT, `all` INT")})
    world.model("grouped", "SELECT max(k) AS m, count(*) AS n FROM {t} GROUP BY ALL")
    world.model("ordered", "SELECT k, `all` FROM {t} ORDER BY ALL LIMIT 2")
    world.insert("t", [(1, 2, 9), (2, 1, 5), (3, 1, 5), (4, 4, 7)])
    exact(world)
    world.delete("t", [(2, 1, 5)])
    world.insert("t", [(5, 1, None), (6, 1, 9)])
    exact(world)


@pytest.mark.parametrize("output", ["", "delta"])
def test_columns_that_spark_names(spark: SparkSession, tmp_path: Path, output: str) -> None:
    """Spark notes which names it made up, and carries that on: no view may have such columns."""
    world = World(spark, tmp_path, {"t": Table("k INT, v INT")}, IN_SPARK)
    world.model("sets", "SELECT k, v, sum(v) FROM {t} GROUP BY k, v GROUPING SETS (k)", output=output)
    world.model("renamed", "WITH n AS (FROM {t} |> SELECT k, v + 1) SELECT k, `(v + 1)` AS w FROM n", output=output)
    world.insert("t", [(1, 2), (1, 3), (2, None)])
    exact(world)
    world.delete("t", [(1, 2)])
    world.insert("t", [(3, 3)])
    exact(world)


PIPES = (
    "FROM {t} |> WHERE v > 1 |> EXTEND v + 1 AS w |> SET v = w * 2, k = (SELECT max(k) FROM {u}) |> DROP w",
    "FROM {t} |> AGGREGATE sum(v) AS s, count(*) AS n GROUP BY k AS key, v % 2 AS odd |> WHERE n > 0",
    "FROM {t} |> AGGREGATE GROUP BY k |> EXTEND k + 1 AS next",
    "TABLE {t} |> UNION ALL TABLE {u} |> EXCEPT ALL (SELECT * FROM {u} WHERE v = 1)",
    "FROM {t} |> AS x |> LEFT JOIN {u} y ON x.k = y.k |> SELECT DISTINCT x.k, y.v AS other",
    "FROM {t} |> SELECT k, sum(v) OVER w AS s WINDOW w AS (PARTITION BY k) |> ORDER BY k, s |> LIMIT 3 |> OFFSET 1",
    "WITH c AS (FROM {t} |> WHERE k > 1) SELECT c.k, (FROM {u} |> AGGREGATE max(v)) AS m FROM c",
    "VALUES (1, 9), (7, 7) AS n(k, v) |> INTERSECT TABLE {t}",
    "FROM {t} |> PIVOT (sum(v) AS s FOR k IN (1, 2)) |> EXTEND 1 AS one",
)


def test_pipes(spark: SparkSession, tmp_path: Path) -> None:
    """Spark computes them anew."""
    world = World(spark, tmp_path, {"t": Table("k INT, v INT"), "u": Table("k INT, v INT")})
    for number, sql in enumerate(PIPES):
        world.model(f"m{number}", sql)
    world.insert("t", [(1, 2), (1, 9), (2, None), (3, 4)])
    world.insert("u", [(1, 1), (2, 5)])
    exact(world)
    world.delete("t", [(1, 2)])
    world.insert("t", [(7, 7), (None, 3)])
    world.insert("u", [(7, 7), (3, 1)])
    exact(world)
