"""Models over columns that a staging model pads with typed NULLs, as packages do where a source lacks them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.asked import ListeningSession
from tests.listening import checked
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PADDED = """(SELECT k, g, CAST(NULL AS STRING) AS s, CAST(NULL AS TIMESTAMP) AS at, CAST(NULL AS DATE) AS day,
  CAST(NULL AS INT) AS n, CAST(NULL AS BIGINT) AS l, CAST(NULL AS BOOLEAN) AS b, CAST(NULL AS DOUBLE) AS x,
  CAST(NULL AS DECIMAL(10, 2)) AS d, CAST(NULL AS ARRAY<STRING>) AS a, CAST(NULL AS TIMESTAMP_NTZ) AS ntz FROM {t})"""
_ALL = "sum(n) AS n, avg(d) AS d, max(s) AS s, min(at) AS at, count(b) AS b, sum(x) AS x, avg(l) AS l, max(day) AS day"
_MODELS = {
    "groups": f"SELECT g, count(*) AS c, {_ALL} FROM {{p}} GROUP BY g",
    "whole": f"SELECT count(*) AS c, {_ALL} FROM {{p}}",
    "by_null": "SELECT s, day, d, count(*) AS c, sum(k) AS k FROM {p} GROUP BY s, day, d",
    "distinct_rows": "SELECT DISTINCT g, s, at, x FROM {p}",
    "distinct_values": "SELECT g, count(DISTINCT s) AS s, count(DISTINCT k) AS k, sum(DISTINCT n) AS n FROM {p} GROUP BY g",
    "others": "SELECT g, bool_or(b) AS b, max_by(k, n) AS k, min_by(s, k) AS s, stddev(x) AS x, first(s, true) AS f, "
    "collect_list(s) AS l, percentile(n, 0.5) AS m, any_value(k) IS NULL AS v FROM {p} GROUP BY g",
    "windows": "SELECT k, lag(s) OVER (ORDER BY k) AS s, sum(n) OVER (PARTITION BY g ORDER BY k) AS n, "
    "row_number() OVER (PARTITION BY s, day ORDER BY at, k) AS r, max(at) OVER (PARTITION BY n) AS at, "
    "first_value(d) OVER (PARTITION BY g ORDER BY k) AS d, ntile(2) OVER (ORDER BY x, k) AS q FROM {p}",
    "joined": "SELECT p.k, u.k AS o FROM {p} p LEFT JOIN {t} u ON p.n = u.k",
    "joined_by_text": "SELECT p.k, u.g FROM {p} p LEFT JOIN {t} u ON coalesce(p.s, CAST(p.k AS STRING)) = CAST(u.k AS STRING)",
    "null_safe": "SELECT p.k, q.k AS o FROM {p} p JOIN {p} q ON p.s <=> q.s AND p.g = q.g",
    "lacking": "SELECT k FROM {p} WHERE s NOT IN (SELECT s FROM {p} WHERE g = 1)",
    "found": "SELECT k FROM {p} p WHERE EXISTS (SELECT 1 FROM {p} q WHERE q.g = p.g AND (q.s = p.s OR q.s IS NULL))",
    "united": "SELECT s, at FROM {p} UNION SELECT CAST(g AS STRING), TIMESTAMP '2024-01-01' FROM {t}",
    "limited": "SELECT k, s FROM {p} ORDER BY s NULLS FIRST, k DESC LIMIT 3",
    "exploded": "SELECT k, e FROM {p} LATERAL VIEW OUTER explode(a) AS e",
    "functions": "SELECT k, from_utc_timestamp(to_utc_timestamp(at, 'UTC'), 'America/Los_Angeles') AS at, "
    "date_trunc('month', at) AS month, datediff(day, DATE '2024-01-01') AS days, lower(s) AS s, initcap(s) AS i, "
    "regexp_replace(s, 'a', 'b') AS r, split(s, ',')[0] AS part, get_json_object(s, '$.a') AS j, round(x, 2) AS x, "
    "date_format(at, 'yyyy') AS y, concat_ws('-', s, g) AS c, md5(s) AS h, hash(s) AS m, n + k AS nk, d * k AS dk, "
    "coalesce(at, ntz) AS t, cast(at AS DATE) AS ad, s || 'x' AS sx, s LIKE 'a%' AS lk, greatest(n, k) AS most, "
    "nullif(k, n) AS nf, if(b, k, -k) AS bk, size(a) AS sa, unix_timestamp(at) AS ut, s IN ('a', 'b') AS within, "
    "CASE WHEN b THEN 1 WHEN n > 3 THEN 2 ELSE 3 END AS cs, substring(s, 1, 2) AS ss, length(s) AS ls, n BETWEEN 1 AND 2 AS bt, "
    "date_add(day, n) AS da, add_months(day, 1) AS am, last_day(day) AS ld, trim(s) AS tr, lpad(s, 3, '0') AS lp FROM {p}",
    "pivoted": "SELECT * FROM (SELECT g, s, n FROM {p}) PIVOT (sum(n) FOR s IN ('a' AS a, 'b' AS b))",
    "rolled": "SELECT g, s, count(*) AS c, max(n) AS n FROM {p} GROUP BY ROLLUP (g, s)",
    "having": "SELECT g, max(n) AS n FROM {p} GROUP BY g HAVING max(coalesce(n, g)) > 0",
    "scalar": "SELECT k, (SELECT max(n) FROM {p} q WHERE q.g = p.g) AS n, (SELECT max(s) FROM {p}) AS s FROM {p} p",
}


def test_random_changes(spark: SparkSession, tmp_path: Path) -> None:
    rng, keys = random.Random(5), iter(range(1_000))
    world = World(spark, tmp_path, {"t": Table("k INT, g INT")})
    for name, sql in _MODELS.items():
        world.model(name, sql.replace("{p}", _PADDED))
    asked: dict[str, list[str]] = {}
    for number in range(4):
        table = world.tables["t"]
        world.delete("t", rng.sample(table.rows, min(len(table.rows), rng.randint(0, 4))))
        added: list[tuple[Any, ...]] = [(next(keys), rng.choice([0, 1, 2, None])) for _ in range(rng.randint(2, 6))]
        world.insert("t", added)
        session = ListeningSession(spark) if number else None

        failures, found = checked(world, session)
        assert not failures, "\n\n".join([f"step {number}", *failures])
        asked |= found
    assert not asked
