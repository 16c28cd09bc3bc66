"""Keys that are always NULL and have no type, in every operator that compares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_T = "(SELECT *, NULL AS n FROM {t})"
MODELS = f"""
SELECT k, v, sum(v) OVER (PARTITION BY NULL ORDER BY id) AS c FROM {{t}}
SELECT n, sum(v) AS c FROM {_T} GROUP BY n
SELECT DISTINCT n, k FROM {_T}
SELECT a.id, b.id AS o FROM {_T} a JOIN {_T} b ON a.n <=> b.n AND a.k = b.k
SELECT n, k FROM {_T} EXCEPT SELECT NULL, 1
SELECT id, v FROM (SELECT *, row_number() OVER (PARTITION BY NULL, k ORDER BY v, id) AS r FROM {{t}}) WHERE r = 1
SELECT k, v, sum(v) OVER (PARTITION BY CAST(NULL AS INT) ORDER BY id) AS c FROM {{t}}
SELECT k, v, sum(v) OVER (PARTITION BY k, NULL ORDER BY id) AS c FROM {{t}}
SELECT k, v, row_number() OVER (PARTITION BY n ORDER BY id DESC) AS c FROM {_T}
SELECT k, v, sum(v) OVER (PARTITION BY n.a) AS c FROM (SELECT *, named_struct('a', NULL) AS n FROM {{t}})
SELECT k, n, max(v) AS c, max(coalesce(n, v)) AS d FROM {_T} GROUP BY n, k
SELECT sum(v) AS c FROM {{t}} GROUP BY 'x', NULL
SELECT max(v) AS c FROM {{t}} GROUP BY CAST(NULL AS STRING)
SELECT DISTINCT n FROM {_T}
SELECT count(DISTINCT n) AS a, count(DISTINCT k, n) AS b, count(n) AS c, max(n) AS d FROM {_T}
SELECT k, count(DISTINCT v) AS a, sum(v) AS s FROM {_T} GROUP BY k, n
SELECT a.id, b.id AS o FROM {_T} a LEFT JOIN {_T} b ON a.n = b.n
SELECT a.id, b.id AS o FROM {_T} a LEFT JOIN {_T} b ON a.n <=> b.n AND a.id = b.k
SELECT a.id FROM {_T} a LEFT SEMI JOIN {_T} b ON struct(a.n).n <=> struct(b.n).n AND a.id = b.k
SELECT a.id, b.id AS o FROM {_T} a FULL JOIN {_T} b ON a.n <=> b.n
SELECT a.id FROM {_T} a LEFT ANTI JOIN (SELECT * FROM {_T} WHERE v > 6) b ON a.n <=> b.n
SELECT n, k FROM {_T} INTERSECT ALL SELECT NULL, k FROM {{t}}
SELECT n, k FROM {_T} UNION SELECT 1, k FROM {{t}}
SELECT n, k, grouping(n) AS g, count(*) AS c FROM {_T} GROUP BY ROLLUP (n, k)
SELECT k, lag(n) OVER (PARTITION BY k ORDER BY id) AS l, first(n) OVER (PARTITION BY n ORDER BY id) AS f FROM {_T}
SELECT k, (SELECT max(b.v) FROM {{t}} b WHERE b.k <=> NULL AND b.id <> a.id) AS m FROM {{t}} a
SELECT k, v, n, rank() OVER (PARTITION BY n, k ORDER BY v, n) AS r FROM {_T} QUALIFY r = 1
SELECT k, collect_set(n) AS s, any_value(n) AS a FROM {_T} GROUP BY k
SELECT n, k, v FROM {_T} ORDER BY n, v, id LIMIT 2
""".strip().splitlines()  # fmt: skip


@pytest.mark.parametrize(
    ("models", "engine"),
    [
        pytest.param(MODELS[:6], "auto", id="some"),
        pytest.param(MODELS, "auto", id="all"),
        pytest.param(MODELS, "spark", id="all in Spark"),
    ],
)
def test_keys_without_a_type(spark: SparkSession, tmp_path: Path, models: list[str], engine: str) -> None:
    world = World(spark, tmp_path, {"t": Table("id INT, k INT, v INT")}, Thresholds.of({}, engine))
    for number, sql in enumerate(models):
        world.model(f"m{number}", sql)
    world.insert("t", [(1, 1, 2), (2, 1, 4), (3, 0, 0), (4, None, 3), (5, 2, None)])
    world.step()
    world.check()
    world.insert("t", [(6, 1, 0), (7, None, 7), (8, -1, None), (9, None, 1)])
    world.delete("t", [(1, 1, 2), (4, None, 3), (5, 2, None)])
    world.step()
    world.check()
