"""Models of every shape over tables that change at random, against the batch answer after every step."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.trace import limits
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A = "k INT, v BIGINT, d DECIMAL(12,2), s STRING, f DOUBLE, ts TIMESTAMP, arr ARRAY<INT>"
B = "k INT, w STRING, p DATE"

QUERIES = {
    "project": "SELECT k + 1 AS k1, upper(s) AS u, v FROM {a} WHERE v > 2 OR v IS NULL",
    "star": "SELECT * FROM {a}",
    "cte": "WITH x AS (SELECT k, v FROM {a} WHERE k > 1), y AS (SELECT * FROM x WHERE v > 1) SELECT x.k, y.v FROM x JOIN y ON x.k = y.k",
    "nested": "SELECT q.k, q.n FROM (SELECT k, count(*) AS n FROM {a} GROUP BY k) q WHERE q.n > 1",
    "union_all": "SELECT k, s FROM {a} UNION ALL SELECT k, w FROM {b}",
    "union": "SELECT k FROM {a} UNION SELECT k FROM {b}",
    "union_wide": "SELECT k FROM {a} UNION ALL SELECT v FROM {a}",
    "distinct": "SELECT DISTINCT k, s FROM {a}",
    "except": "SELECT k FROM {a} EXCEPT SELECT k FROM {b}",
    "except_all": "SELECT k FROM {a} EXCEPT ALL SELECT k FROM {b}",
    "intersect": "SELECT k FROM {a} INTERSECT SELECT k FROM {b}",
    "intersect_all": "SELECT k FROM {a} INTERSECT ALL SELECT k FROM {b}",
    "join": "SELECT a.*, b.w FROM {a} a JOIN {b} b ON a.k = b.k",
    "join3": "SELECT a.k, b.w, c.v FROM {a} a, {b} b, {a} c WHERE a.k = b.k AND b.k = c.k AND a.v < c.v",
    "join_using": "SELECT * FROM {a} JOIN {b} USING (k)",
    "join_theta": "SELECT a.k, b.k AS bk FROM {a} a JOIN {b} b ON a.k < b.k",
    "cross": "SELECT a.s, b.w FROM {a} a CROSS JOIN {b} b WHERE a.v = 1",
    "left": "SELECT a.k, a.v, b.w FROM {a} a LEFT JOIN {b} b ON a.k = b.k",
    "left_extra": "SELECT a.k, a.v, b.w FROM {a} a LEFT JOIN {b} b ON a.k = b.k AND b.w > a.s",
    "left_nullsafe": "SELECT a.k, b.w FROM {a} a LEFT JOIN {b} b ON a.k <=> b.k",
    "left_where": "SELECT a.k, b.w FROM {a} a LEFT JOIN {b} b ON a.k = b.k WHERE b.w IS NULL OR a.v > 1",
    "left_agg": "SELECT a.k, x.n FROM {a} a LEFT JOIN (SELECT k, count(*) AS n FROM {b} GROUP BY k) x ON a.k = x.k",
    "right": "SELECT a.v, b.w FROM {a} a RIGHT JOIN {b} b ON a.k = b.k",
    "full": "SELECT a.k, b.k AS bk, b.w FROM {a} a FULL JOIN {b} b ON a.k = b.k",
    "full_using": "SELECT * FROM {a} FULL JOIN {b} USING (k)",
    "semi": "SELECT * FROM {a} a LEFT SEMI JOIN {b} b ON a.k = b.k",
    "anti": "SELECT * FROM {a} a LEFT ANTI JOIN {b} b ON a.k = b.k",
    "count": "SELECT k, count(*) AS n, count(v) AS nv, sum(v) AS sv, avg(v) AS av FROM {a} GROUP BY k",
    "decimals": "SELECT s, sum(d) AS sd, avg(d) AS ad, count_if(v > 1) AS c FROM {a} GROUP BY s",
    "extremes": "SELECT k, min(v) AS lo, max(s) AS hi, max(ts) AS t, count(*) AS n FROM {a} GROUP BY k",
    "extremes_filter": "SELECT k, max(v) FILTER (WHERE s = 'x') AS m, sum(v) FILTER (WHERE v > 1) AS sv FROM {a} GROUP BY k",
    "booleans": "SELECT k, bool_and(v > 1) AS al, any(v > 4) AS an, some(s = 'x') AS so FROM {a} GROUP BY k",
    "count_distinct": "SELECT k, count(DISTINCT v) AS n, count(DISTINCT v, s) AS m FROM {a} GROUP BY k",
    "general": "SELECT k, percentile(v, 0.5) AS p, sort_array(collect_list(v)) AS l, stddev_pop(v) IS NULL AS x FROM {a} GROUP BY k",
    "floats": "SELECT k, sum(f) AS sf, max(f) AS mf FROM {a} GROUP BY k",
    "global": "SELECT count(*) AS n, sum(v) AS s, max(v) AS m, min(d) AS d FROM {a}",
    "global_general": "SELECT count(DISTINCT k) AS n, percentile(v, 0.5) AS p FROM {a}",
    "group_expr": "SELECT k % 2 AS par, date_trunc('day', ts) AS day, count(*) AS n FROM {a} GROUP BY 1, date_trunc('day', ts)",
    "group_all": "SELECT k, s, sum(v) + 1 AS x FROM {a} GROUP BY ALL",
    "group_only": "SELECT k FROM {a} GROUP BY k",
    "having": "SELECT k, sum(v) AS sv FROM {a} GROUP BY k HAVING count(*) > 1 AND sv > 3",
    "join_agg": "SELECT b.w, count(*) AS n, sum(a.v) AS s, max(a.v) AS m FROM {a} a JOIN {b} b ON a.k = b.k GROUP BY b.w",
    "agg_of_agg": "SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM {a} GROUP BY k) GROUP BY n",
    "top": "SELECT k, v, s FROM {a} ORDER BY v DESC, k, s, d, f, ts, arr LIMIT 3",
    "top_agg": "SELECT k, count(*) AS n FROM {a} GROUP BY k ORDER BY n DESC, k LIMIT 2",
    "top_offset": "SELECT k, count(*) AS n FROM {a} GROUP BY k ORDER BY n DESC, k LIMIT 2 OFFSET 1",
    "row_number": "SELECT * FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM {a}) WHERE rn <= 2",
    "rank": "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v) AS r, sum(v) OVER (PARTITION BY k) AS t FROM {a}",
    "running": "SELECT k, v, sum(v) OVER (PARTITION BY s ORDER BY v, k) AS run, count(*) OVER () AS n FROM {a}",
    "qualify": "SELECT k, v FROM {a} QUALIFY row_number() OVER (PARTITION BY k ORDER BY v, d) = 1",
    "explode": "SELECT k, x FROM {a} LATERAL VIEW explode(arr) t AS x",
    "explode_outer": "SELECT k, x + 1 AS y FROM {a} LATERAL VIEW OUTER explode(arr) t AS x",
    "explode_select": "SELECT k, explode(arr) AS x FROM {a}",
    "struct": "SELECT struct(k, v) AS st, map(s, v) AS m, array(k) AS ar FROM {a} WHERE s IS NOT NULL",
    "in_subquery": "SELECT k, v FROM {a} WHERE k IN (SELECT k FROM {b})",
    "scalar_subquery": "SELECT k, v - (SELECT min(v) FROM {a}) AS d FROM {a}",
    "exists": "SELECT k FROM {a} a WHERE EXISTS (SELECT 1 FROM {b} b WHERE b.k = a.k AND b.w > 'p')",
    "rollup": "SELECT k, s, count(*) AS n FROM {a} GROUP BY ROLLUP (k, s)",
    "values": "SELECT a.k, x.n FROM {a} a JOIN (VALUES (1, 'one'), (2, 'two')) AS x(k, n) ON a.k = x.k",
    "case": "SELECT CASE WHEN v > 2 THEN 'big' ELSE coalesce(s, '-') END AS c, count(*) AS n FROM {a} GROUP BY 1",
    "lateral_alias": "SELECT k + 1 AS x, x * 2 AS y FROM {a}",
    "no_from": "SELECT 1 AS one, 'x' AS x",
    "quoted": "SELECT k AS `a b`, s AS `select` FROM {a} WHERE s LIKE 'x%' OR s = '{{x}}'",
}


def row_a(rng: random.Random) -> tuple[Any, ...]:
    """A row with NULLs, and values that often repeat."""
    import datetime

    day = datetime.datetime(2020, 1, rng.randint(1, 3), rng.choice([0, 12]))
    return (
        rng.choice([1, 2, 3, 4, None]),
        rng.choice([1, 2, 5, 9, None]),
        rng.choice([Decimal("1.25"), Decimal("-3.10"), Decimal("0.00"), None]),
        rng.choice(["x", "y", "z", "", None]),
        rng.choice([0.5, 1.25, -2.0, float("nan"), 0.0, -0.0, None]),
        rng.choice([day, None]),
        rng.choice([[1, 2], [], [3], None]),
    )


def row_b(rng: random.Random) -> tuple[Any, ...]:
    """A row of the smaller table."""
    import datetime

    return (rng.choice([1, 2, 3, 7, None]), rng.choice(["p", "q", "x"]), datetime.date(2020, 1, rng.randint(1, 2)))


def shuffle(world: World, rng: random.Random, inserts: int = 6, deletes: int = 4) -> None:
    """Inserts and deletes some rows of either table, sometimes of neither."""
    for name, make in (("a", row_a), ("b", row_b)):
        if rng.random() < 0.25:
            continue
        world.insert(name, [make(rng) for _ in range(rng.randint(0, inserts))])
        rows = world.tables[name].rows
        gone = rng.sample(range(len(rows)), min(len(rows), rng.randint(0, deletes)))
        world.delete(name, [rows[i] for i in gone])


@pytest.mark.parametrize("driver", [True, False], ids=["on the driver", "in Spark"])
def test_exact_after_every_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: bool
) -> None:
    """All queries as models of one world; every third with deltas that count as too large for the driver."""
    queries = QUERIES if driver else dict(list(QUERIES.items())[::3])
    if not driver:
        for name in ("LOCAL_ROWS", "PROBED_ROWS", "FOUND_ROWS", "JOINED_ROWS"):
            monkeypatch.setattr(limits, name, 1)
    seed = 1 if driver else 2
    rng = random.Random(seed)
    world = World(spark, tmp_path, {"a": Table(A), "b": Table(B)})
    for name, sql in queries.items():
        world.model(name, sql.replace("{{", "{").replace("}}", "}"))
    failures: list[str] = []
    for _ in range(3):
        failures += world.step_and_check_each(threads=3)
        shuffle(world, rng)
    assert not failures, "\n".join(failures)
