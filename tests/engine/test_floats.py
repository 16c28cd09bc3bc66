"""Models that group, join and order by floats: exact after every change, on the driver and in Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.asked import ListeningSession
from tests.engines import engine
from tests.listening import checked
from tests.local.test_floats import VALUES
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "distinct": "SELECT DISTINCT x, y FROM {t}",
    "by_x": "SELECT x, count(*) AS n, sum(k) AS s, max(k) AS most FROM {t} GROUP BY x",
    "extremes": "SELECT k % 3 AS g, min(x) AS least, max(x) AS most, count(y) AS n FROM {t} GROUP BY 1",
    "of_all": "SELECT min(x) AS least, max(x) AS most FROM {t} WHERE k > 2",
    "of_floats": "SELECT k % 2 AS g, min(y) AS least, max(y) AS most FROM {t} GROUP BY 1",
    "several": "SELECT x, count(DISTINCT y) AS n FROM {t} GROUP BY x HAVING count(*) > 1",
    "united": "SELECT x FROM {t} UNION SELECT z FROM {u}",
    "without": "SELECT x FROM {t} EXCEPT SELECT z FROM {u}",
    "both": "SELECT x FROM {t} INTERSECT SELECT z FROM {u}",
    "joined": "SELECT t.k, t.x, u.w FROM {t} t JOIN {u} u ON t.x = u.z",
    "left": "SELECT t.k, u.w FROM {t} t LEFT JOIN {u} u ON t.x <=> u.z AND t.k > u.w",
    "absent": "SELECT k, x FROM {t} WHERE NOT EXISTS (SELECT 1 FROM {u} WHERE z = x)",
    "first": "SELECT k, x, y FROM {t} QUALIFY row_number() OVER (PARTITION BY y ORDER BY x DESC NULLS LAST, k) = 1",
    "ranked": "SELECT k, x, rank() OVER (PARTITION BY k % 2 ORDER BY x) AS r, lag(x) OVER (ORDER BY k) AS b FROM {t}",
    "top": "SELECT k, x FROM {t} ORDER BY x DESC NULLS LAST, k LIMIT 3",
}

MAY_ASK = {"of_floats", "without", "absent"}
"""The first one because the driver does not compute FLOATs, the others for their relations, which were empty."""


@pytest.mark.parametrize("is_in_spark", [False, True], ids=["driver", "Spark"])
def test_random_changes(spark: SparkSession, tmp_path: Path, is_in_spark: bool) -> None:
    rng, keys = random.Random(11), iter(range(1_000))
    tables = {"t": Table("k INT, x DOUBLE, y FLOAT"), "u": Table("w INT, z DOUBLE")}
    world = World(spark, tmp_path, tables, engine(is_in_spark))
    for name, sql in MODELS.items():
        world.model(name, sql)

    def row(table: str) -> tuple[Any, ...]:
        return (next(keys), rng.choice(VALUES), *([rng.choice(VALUES[:-1])] if table == "t" else []))

    asked: set[str] = set()
    for number in range(2 if is_in_spark else 4):
        for name, table in tables.items():
            world.delete(name, rng.sample(table.rows, min(len(table.rows), rng.randint(0, 4))))
            world.insert(name, [row(name) for _ in range(rng.randint(1, 6))])
        session = ListeningSession(spark) if number and not is_in_spark else None

        failures, found = checked(world, session, fallback="error")
        assert not failures, "\n\n".join([f"step {number}", *failures])
        asked |= found.keys()
    assert asked <= MAY_ASK
