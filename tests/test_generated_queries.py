"""The generated benchmark's queries: one seed makes one suite, and its queries are such as can be models."""

from __future__ import annotations

from benchmarks.generated.queries import queries, shape_of
from benchmarks.generated.shapes import SHAPES
from benchmarks.tpch.feed import KEYS
from dbt_incremental_dd.frontend.check import check
from dbt_incremental_dd.frontend.parsed import parsed

COUNT = 50


def test_one_seed_makes_one_suite() -> None:
    suite = queries(7, COUNT)
    assert list(suite) == [f"g{i:02}" for i in range(1, COUNT + 1)]
    assert suite == queries(7, COUNT)
    assert len(set(suite.values())) == COUNT
    assert not set(suite.values()) & set(queries(8, COUNT).values())
    assert {shape_of(sql) for sql in suite.values()} == {shape.__name__ for shape in SHAPES}


def test_queries_read_the_tables_and_give_the_same_answer_each_time() -> None:
    for sql in queries(1, COUNT).values():
        check(parsed(sql))
        assert {relation.key for relation in parsed(sql).relations} <= {f"tpch.{table}" for table in KEYS}
