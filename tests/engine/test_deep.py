"""Queries that nest deeply, or have very many operands, as generated SQL has."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.parsed import parsed
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _chain(count: int, step: str) -> str:
    """CTEs of which each reads the one before it."""
    ctes = ["c0 AS (SELECT k, v FROM {t})"]
    ctes += [f"c{i} AS ({step.format(before=f'c{i - 1}', i=i)})" for i in range(1, count)]
    return f"WITH {', '.join(ctes)} SELECT k, v FROM c{count - 1}"


def _nested(count: int) -> str:
    sql = "SELECT k, v FROM {t}"
    for i in range(count):
        sql = f"SELECT k, v + 1 AS v FROM ({sql}) WHERE v <> {i}"
    return sql


def _joins(count: int, kind: str, on: str) -> str:
    columns = ", ".join(f"b{i}.w AS w{i}" for i in range(count))
    joined = " ".join(f"{kind} JOIN {{u}} b{i} ON {on.format(i=i)}" for i in range(count))
    return f"SELECT a.k, {columns} FROM {{t}} a {joined}"


SOME = {
    "nested blocks": _nested(60),
    "nested CASE": "SELECT k, " + "".join(f"CASE WHEN v = {i} THEN {i * 2} ELSE " for i in range(100)) + "-1"
    " " + "END " * 100 + "AS x FROM {t}",
    "nested calls": "SELECT k, " + "coalesce(" * 80 + "v" + ", 1)" * 80 + " AS x FROM {t}",
    "parentheses": "SELECT k, " + "(" * 100 + "v" + ")" * 100 + " AS x FROM {t}",
    "UNION ALL": " UNION ALL ".join(f"SELECT k, v + {i} AS v FROM {{t}}" for i in range(100)),
}
MORE = {
    "CTEs": _chain(60, "SELECT k, v + 1 AS v FROM {before} WHERE v <> {i}"),
    "sums of sums": _chain(60, "SELECT k, sum(v) AS v FROM {before} GROUP BY k"),
    "LEFT JOIN": _joins(60, "LEFT", "b{i}.k = a.k AND b{i}.w = {i}"),
    "FULL JOIN": _joins(20, "FULL", "b{i}.k = a.k"),
    "JOIN": _joins(40, "", "b{i}.k = a.k"),
    "UNION": " UNION ".join(f"SELECT k, v + {i} AS v FROM {{t}}" for i in range(100)),
    "EXCEPT": " EXCEPT ".join(f"SELECT k, v FROM {{t}} WHERE v {'<>' if i == 0 else '='} {i}" for i in range(60)),
    "OR": "SELECT * FROM {t} WHERE " + " OR ".join(f"v = {3 * i}" for i in range(1_000)),
    "sum": "SELECT k, v" + " + 1" * 300 + " AS x FROM {t}",
}


@pytest.mark.parametrize("queries", [SOME, MORE], ids=["some", "more"])
def test_deep_queries_are_maintained(spark: SparkSession, tmp_path: Path, queries: dict[str, str]) -> None:
    world = World(spark, tmp_path, {"t": Table("k INT, v INT"), "u": Table("k INT, w INT")})
    for number, sql in enumerate(queries.values()):
        world.model(f"m{number}", sql)
    world.insert("t", [*((i % 5, i) for i in range(12)), (None, 3), (1, None)])
    world.insert("u", [(i, i * 7 % 60) for i in range(4)])
    world.step_exactly(1)
    world.insert("t", [(2, 100), (7, 7)])
    world.delete("t", [(1, 1)])
    world.insert("u", [(9, 9)])
    world.step_exactly(2)


def test_a_query_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(UnsupportedSQL, match="nested too deeply"):
        _ = parsed("SELECT " + "(" * 50_000 + "1" + ")" * 50_000).tree


def test_a_small_stack_has_room_for_the_deepest_query() -> None:
    """What is too deep ends in an error, never with the process."""
    told: list[str] = []

    def parse() -> None:
        for sql in ("SELECT " + "NOT " * 50_000 + "a", "SELECT a FROM (" * 50_000 + "SELECT 1 AS a" + ")" * 50_000):
            try:
                _ = parsed(sql).tree
            except UnsupportedSQL as error:
                told.append(error.construct)

    before = threading.stack_size(1024 * 1024)
    try:
        thread = threading.Thread(target=parse)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert told == ["the query is nested too deeply"] * 2
