"""The Python API's rows, of every type, from files that Spark and Arrow have written, against Spark's own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from tests.oracle import Table, World

COLUMNS = {
    "n": "n",
    "dec": "CAST(n * 1.25 AS DECIMAL(20, 3))",
    "dbl": "n / 3",
    "flt": "CAST(n AS FLOAT)",
    "txt": "concat('x', n)",
    "bin": "CAST(concat('b', n) AS BINARY)",
    "yes": "n % 2 = 0",
    "day": "date_add(DATE'2020-01-01', n)",
    "ts": "TIMESTAMP'2020-01-01 00:00:00.123456Z' + make_interval(0, 0, 0, n)",
    "ntz": "TIMESTAMP_NTZ'2020-01-01 00:00:00.5' + make_interval(0, 0, 0, n)",
    "`odd name`": "CAST(n AS TINYINT)",
}
NESTED = {
    "list": "array(n, NULL)",
    "times": "array(TIMESTAMP'2020-01-01 00:00:00Z' + make_interval(0, 0, 0, n))",
    "pair": "named_struct('a', n, 'at', TIMESTAMP'2020-01-01 00:00:00Z')",
    "deep": "array(named_struct('d', array(CAST(n AS DECIMAL(10, 2)))))",
}


@pytest.mark.parametrize("nested", [False, True])
def test_rows_of_every_type(spark: Any, tmp_path: Any, request: pytest.FixtureRequest, nested: bool) -> None:
    expressions = {**COLUMNS, **(NESTED if nested else {})}
    nulled = ", ".join(f"IF(n IS NULL, NULL, {expression}) AS {name}" for name, expression in expressions.items())
    world = World(spark, tmp_path, {"t": Table("n INT", [(1,), (2,), (2,), (3,), (None,)])})
    world.model("m", f"SELECT {nulled} FROM {{t}}")
    collection = Collection(world.storage, f"{world.schema}.m")
    states = {}
    for step, rows in enumerate(([], [(4,), (4,), (None,)], [(5,)], [(6,)])):
        if step == 2:
            world.storage = replace(world.storage, thresholds=request.getfixturevalue("in_spark"))
        world.insert("t", rows)
        if step:
            world.delete("t", [(step,)])
        world.step()
        states[world.time] = _spark_rows(world)
        assert _rows(collection.as_of()) == states[world.time]
    assert {t: _rows(collection.as_of(t)) for t in states} == states
    assert collection.changes().num_rows >= 8
    list(compact(LazySession.of(spark), world.storage, None, 0))
    assert _rows(collection.as_of()) == states[world.time] and collection.status().rows == sum(
        states[world.time].values()
    )


def _spark_rows(world: World) -> Counter[str]:
    found = world.found("m").toArrow()
    return Counter(str(list(row.values())) for row in found.to_pylist())


def _rows(table: Any) -> Counter[str]:
    counted: Counter[str] = Counter()
    for row in table.to_pylist():
        diff = row.pop("dd_diff")
        counted[str(list(row.values()))] += diff
    return counted
