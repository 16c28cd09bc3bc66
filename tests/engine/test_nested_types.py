"""Structs, arrays and maps through every operator: as values beside NULLs, as keys, and as results."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "t": "id INT, k INT, v INT, st STRUCT<x: INT, y: STRING>, arr ARRAY<INT>, m MAP<STRING, INT>",
    "u": "k INT",
}
_MADE = "SELECT id, named_struct('st', st, 'arr', array(k)) AS o, array(st) AS p, map('k', st) AS q FROM {t}"
"""Of types whose parts Spark knows not to be NULL."""

MODELS = f"""
SELECT a.id, b.st, b.arr, b.m FROM {{t}} a LEFT JOIN {{t}} b ON a.k = b.id
SELECT a.id, b.st FROM {{t}} a LEFT JOIN {{t}} b ON a.k = b.id
SELECT a.id, a.st AS s1, b.st AS s2 FROM {{t}} a FULL JOIN {{t}} b ON a.k = b.id
SELECT a.id, a.st AS s1, b.st AS s2 FROM {{t}} a RIGHT JOIN {{t}} b ON a.k = b.id AND a.v > b.v
SELECT a.id, b.st, c.st AS other FROM {{t}} a LEFT JOIN {{t}} b ON a.k = b.id LEFT JOIN {{t}} c ON b.st = c.st AND c.k > 1
SELECT a.id, b.o, b.p, b.q FROM {{t}} a LEFT JOIN ({_MADE}) b ON a.k = b.id
SELECT a.id, a.o AS o1, b.o AS o2 FROM ({_MADE}) a FULL JOIN ({_MADE}) b ON a.id = b.id + 2
SELECT a.id, b.s FROM {{t}} a LEFT JOIN (SELECT id, named_struct('st', st, 'k', k) AS s FROM {{t}}) b ON a.k = b.id
SELECT u.k, b.st FROM {{u}} u LEFT JOIN (SELECT k, max(st) AS st FROM {{t}} GROUP BY k) b ON u.k = b.k
SELECT u.k, nvl(b.st.x, -1) AS x FROM {{u}} u LEFT JOIN (SELECT k, max(st) AS st FROM {{t}} GROUP BY k) b ON u.k = b.k
SELECT u.k FROM {{u}} u LEFT ANTI JOIN {{t}} b ON u.k = b.st.x
SELECT a.id, b.id AS other FROM {{t}} a JOIN {{t}} b ON a.st = b.st
SELECT a.id, b.id AS other FROM {{t}} a LEFT JOIN {{t}} b ON a.arr <=> b.arr AND a.st <=> b.st
SELECT id, CASE WHEN v > 2 THEN st END AS c, if(v > 2, NULL, st) AS i, CASE WHEN v > 3 THEN NULL ELSE m END AS m FROM {{t}}
SELECT id, coalesce(st, named_struct('x', 7, 'y', 'q')) AS c, coalesce(NULL, st) AS d, ifnull(arr, NULL) AS e FROM {{t}}
SELECT id, coalesce(st, named_struct('x', 7L, 'y', 'q')) AS c FROM {{t}}
SELECT id, CASE WHEN v > 2 THEN st ELSE named_struct('x', 2.5D, 'y', 'r') END AS c FROM {{t}}
SELECT id, nullif(st, named_struct('x', 1, 'y', 'a')) AS c, CAST(NULL AS STRUCT<x: INT>) AS n, nvl2(st, k, v) AS w FROM {{t}}
SELECT id, st = named_struct('x', 1, 'y', 'a') AS e, st < named_struct('x', 2, 'y', 'a') AS l FROM {{t}}
SELECT id, CAST(st AS STRUCT<a: BIGINT, b: STRING>) AS c, struct(st.x AS a, v AS b) AS s, greatest(st, NULL) AS g FROM {{t}}
SELECT id, lag(st) OVER w AS l, lead(arr, 2) OVER w AS m, first(st) OVER w AS f FROM {{t}} WINDOW w AS (PARTITION BY k ORDER BY id)
SELECT id, st, row_number() OVER (ORDER BY st, id) AS r, sum(v) OVER (PARTITION BY st ORDER BY id) AS s FROM {{t}}
SELECT id, st FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY st DESC, id) AS r FROM {{t}}) WHERE r = 1
SELECT id, st, arr FROM {{t}} ORDER BY st, arr, id LIMIT 3
SELECT k, max(st) AS m, min(st) AS n, max(arr) AS o FROM {{t}} GROUP BY k
SELECT max(st) AS m, min(st) AS n FROM {{t}} WHERE v > 2
SELECT k, max(CASE WHEN v > 2 THEN st END) AS m, max(st) FILTER (WHERE v > 3) AS f FROM {{t}} GROUP BY k
SELECT k, max_by(st, id) AS m, min_by(arr, id) AS n, max_by(m, id) AS o FROM {{t}} GROUP BY k
SELECT k, count(st) AS m, count(DISTINCT st) AS n, count(DISTINCT arr) AS o FROM {{t}} GROUP BY k
SELECT st, arr, count(*) AS n, sum(v) AS s FROM {{t}} GROUP BY st, arr
SELECT DISTINCT st, arr FROM {{t}}
SELECT k, collect_list(st) AS f FROM (SELECT k, max(st) AS st FROM {{t}} GROUP BY k) GROUP BY k
SELECT k, st, sum(v) AS s FROM {{t}} GROUP BY ROLLUP (k, st)
SELECT k, st, sum(v) AS s FROM {{t}} GROUP BY GROUPING SETS ((k), (st), ())
SELECT * FROM (SELECT k, v, st FROM {{t}}) PIVOT (max(st) FOR k IN (1 AS a, 2 AS b))
SELECT st FROM {{t}} UNION SELECT NULL
SELECT st, arr FROM {{t}} UNION ALL SELECT NULL, NULL FROM {{u}}
SELECT st FROM {{t}} UNION ALL SELECT named_struct('x', 3L, 'y', 'z')
SELECT st FROM {{t}} EXCEPT SELECT st FROM {{t}} WHERE v > 2
SELECT st FROM {{t}} INTERSECT ALL SELECT st FROM {{t}} WHERE v > 2
SELECT id, (SELECT max(st) FROM {{t}} b WHERE b.k = a.id) AS s, (SELECT b.arr FROM {{t}} b WHERE b.id = a.k) AS r FROM {{t}} a
SELECT id, (SELECT b.st FROM {{t}} b WHERE b.id = a.k) AS s FROM {{t}} a
SELECT id FROM {{t}} a WHERE st IN (SELECT st FROM {{t}} WHERE v > 2)
SELECT id, arr IN (SELECT arr FROM {{t}} WHERE v > 2) AS i FROM {{t}} a
SELECT id, st.x + 1 AS x, upper(st.y) AS y, st.x IS NULL AS n, st IS NULL AS o, arr[0] AS f, m['a'] AS a FROM {{t}}
SELECT id, e, pos FROM {{t}} LATERAL VIEW OUTER posexplode(arr) AS pos, e
SELECT id, i.x FROM {{t}} LATERAL VIEW inline(array(st)) i
""".strip().splitlines()  # fmt: skip


def test_nested_types_beside_nulls(spark: SparkSession, tmp_path: Path) -> None:
    _run(spark, tmp_path, MODELS[1:6:2], "auto", steps=2)


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_nested_types_in_every_operator(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    _run(spark, tmp_path, MODELS, engine, steps=2)


def _run(spark: SparkSession, folder: Path, models: Sequence[str], engine: str, steps: int) -> None:
    rng, tables = random.Random(5), {name: Table(ddl) for name, ddl in TABLES.items()}
    world = World(spark, folder, tables, Thresholds.of({}, engine))
    for number, sql in enumerate(models):
        world.model(f"m{number}", sql)
    for step in range(steps):
        rows = world.tables["t"].rows
        world.delete("t", rng.sample(rows, len(rows) // 3))
        world.insert("t", [_row(rng, 10 * step + i) for i in range(10)])
        world.insert("u", [(step,), (None,)])
        world.step()
        world.check()


def _row(rng: random.Random, id: int) -> tuple[Any, ...]:
    def perhaps(value: Any) -> Any:
        return None if rng.random() < 0.2 else value

    struct = perhaps((perhaps(rng.randint(0, 3)), perhaps(rng.choice("abc"))))
    array, map = perhaps([rng.randint(0, 2), None]), perhaps({"a": perhaps(rng.randint(0, 2))})
    return id, perhaps(rng.randint(0, 9)), perhaps(rng.randint(0, 5)), struct, array, map
