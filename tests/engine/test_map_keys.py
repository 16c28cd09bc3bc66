"""Models whose groups are told apart by maps, also within arrays and structs: exact on the driver and in Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.asked import ListeningSession
from tests.engines import engine
from tests.listening import checked
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAP = "CASE WHEN x = 0 THEN NULL WHEN k % 2 = 0 THEN map('a', x, 'b', y) ELSE map('b', y, 'a', x) END"
"""Equal maps have their entries in either order."""
_KEYS = {
    "map": _MAP,
    "array": f"CASE WHEN y = 3 THEN NULL ELSE array({_MAP}, NULL, map('c', y)) END",
    "struct": f"CASE WHEN y = 3 THEN NULL ELSE named_struct('p q', {_MAP}, 'n', y) END",
    "map of maps": f"map(x, {_MAP})",
    "map of arrays": f"map(x, array({_MAP}))",
}
_MODELS = {
    "sums": "SELECT m, count(*) AS n, sum(k) AS s, avg(k) AS a FROM {t} GROUP BY m",
    "extremes": "SELECT m, min(k) AS least, max(w) AS most, count(w) AS n FROM {t} GROUP BY m HAVING count(*) > 1",
    "recomputed": "SELECT m, sort_array(collect_set(w)) AS s, percentile(k, 0.5) AS p FROM {t} GROUP BY m",
    "distinct": "SELECT m, y, count(DISTINCT k % 3) AS n, count(DISTINCT w) AS o, sum(k) AS s FROM {t} GROUP BY m, y",
    "rollup": "SELECT m, y, count(*) AS n, max(k) AS k FROM {t} GROUP BY ROLLUP (m, y)",
    "counted": "SELECT y, count(DISTINCT m) AS n FROM {t} GROUP BY y",
    "pivoted": "SELECT * FROM (SELECT m, k, w FROM {t}) PIVOT (max(k) AS k, count(*) AS n FOR w IN ('r', 's'))",
    "alone": "SELECT m FROM {t} GROUP BY m",
    "of groups": "SELECT max(n) AS n, count(m) AS c FROM (SELECT m, count(*) AS n FROM {t} GROUP BY m)",
    "limited": "SELECT k FROM (SELECT m, max(k) AS k FROM {t} GROUP BY m) ORDER BY k DESC LIMIT 2",
}


@pytest.mark.parametrize("kind", _KEYS)
@pytest.mark.parametrize("is_in_spark", [False, True], ids=["driver", "Spark"])
def test_random_changes(spark: SparkSession, tmp_path: Path, is_in_spark: bool, kind: str) -> None:
    rng, keys = random.Random(11), iter(range(1_000))
    world = World(spark, tmp_path, {"t": Table("k INT, x INT, y INT, w STRING")}, engine(is_in_spark))
    rows = f"(SELECT k, y, w, {_KEYS[kind]} AS m FROM {{t}})"
    for name, sql in _MODELS.items():
        world.model(name.replace(" ", "_"), sql.replace("{t}", rows))

    def row() -> tuple[Any, ...]:
        return next(keys), rng.randrange(3), rng.choice([1, 2, 3, None]), rng.choice(["r", "s", None])

    asked: dict[str, list[str]] = {}
    for number in range(4):
        table = world.tables["t"]
        world.delete("t", rng.sample(table.rows, min(len(table.rows), rng.randint(0, 5))))
        world.insert("t", [row() for _ in range(rng.randint(3, 9))])
        session = ListeningSession(spark) if number and not is_in_spark else None

        failures, found = checked(world, session)
        assert not failures, "\n\n".join([f"step {number}", *failures])
        asked |= found
    assert not asked
