"""The references against the meaning of the queries' own text, and the generators against what they promise."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_incremental_dd.frontend.parsed import parsed
from tests.recursion.graphs import KINDS, Edge, Graph, Node, shape
from tests.recursion.iterated import Iterated, plain
from tests.recursion.queries import EDGES, QUERIES, SOURCES, Query, queries
from tests.recursion.reference import Edges, Sources

Tables = tuple[list[Edge], list[Node]]


def changing(kind: str, size: int, seed: int, edits: int) -> list[Tables]:
    """The edges and the sources at first and after each edit."""
    rng = random.Random(f"{kind} {seed}")
    graph = Graph(kind, size)
    tables: dict[str, list[Any]] = {"edges": graph.first_edges(rng), "sources": graph.first_sources(rng)}
    found = []
    for _ in range(edits + 1):
        found.append((list(tables["edges"]), [a for (a,) in tables["sources"]]))
        edit = graph.edit(tables["edges"], tables["sources"], rng)
        if edit.diff > 0:
            tables[edit.table].append(edit.row)
        else:
            tables[edit.table].remove(edit.row)
    return found


def size_of(kind: str) -> int:
    return 5 if kind == "clique" else 9


def assert_all(tables: Iterated, kind: str, edges: Edges, sources: Sources) -> None:
    tables.load(edges, sources)
    for query in queries(kind):
        right = tables.answer(query)
        assert query.answer(edges, sources) == right, (query.name, edges, sources)


@pytest.fixture(scope="module")
def iterated() -> Iterated:
    return Iterated()


@pytest.mark.parametrize("kind", KINDS)
def test_iterating_the_queries_gives_the_same(iterated: Iterated, kind: str) -> None:
    for seed in (1, 2):
        for edges, sources in changing(kind, size_of(kind), seed, edits=60)[::6]:
            assert_all(iterated, kind, edges, sources)


nodes = st.sampled_from([0, 1, 2, 3, None])
rows = st.tuples(nodes, nodes, st.sampled_from([1, 2, 5, 9, None]))


@settings(max_examples=100)
@given(edges=st.lists(rows, max_size=8), sources=st.lists(nodes, max_size=3))
def test_iterating_them_over_any_rows_does(edges: list[Edge], sources: list[Node]) -> None:
    assert_all(Iterated(), "random", edges, sources)


@pytest.mark.parametrize("kind", KINDS)
def test_the_recursion_of_another_database_does(kind: str) -> None:
    """DuckDB goes on from new rows alone, which is the same for sets and for paths without a way back."""
    duck = duckdb.connect()
    duck.execute(f"SET threads = 1; CREATE TABLE edges ({EDGES}); CREATE TABLE sources ({SOURCES})")
    for edges, sources in changing(kind, size_of(kind), seed=3, edits=60)[::3]:
        duck.execute("DELETE FROM edges; DELETE FROM sources")
        for name, rows in (("edges", edges), ("sources", [(a,) for a in sources])):
            if rows:
                duck.execute(f"INSERT INTO {name} VALUES {', '.join(map(_values, rows))}")
        for query in queries(kind):
            if query.native:
                right = Counter(duck.execute(plain(query.sql)).fetchall())
                assert query.answer(edges, sources) == right, (query.name, edges, sources)


def _values(row: Sequence[int | None]) -> str:
    return f"({', '.join('NULL' if value is None else str(value) for value in row)})"


def test_a_case_by_hand() -> None:
    edges: list[Edge] = [(1, 2, 4), (2, 3, 1), (1, 3, 9), (1, 3, 9), (3, None, 2), (None, 1, None)]
    expected: dict[str, set[tuple[Any, ...]]] = {
        "closure": {
            (1, 2),
            (1, 3),
            (1, None),
            (2, 3),
            (2, None),
            (3, None),
            (None, 1),
            (None, 2),
            (None, 3),
            (None, None),
        },
        "reach": {(1,), (2,), (3,), (None,)},
        "components": {(1, 1), (2, 1), (3, 1), (None, 1)},
        "hops": {(1, 0), (2, 1), (3, 1), (None, 2)},
        "costs": {(1, 0), (2, 4), (3, 5), (None, 7)},
        "same_generation": {(2, 2), (2, 3), (3, 2), (3, 3), (3, None), (None, 3), (None, None)},
        "round_trip": {(1, 0, 0)},
        "big": {(1, 2, 4), (1, 3, 9)},
        "big_costs": {(1, 0), (2, 4), (3, 9)},
    }
    found = {query.name: query.answer(edges, [1]) for query in QUERIES}
    assert {name: found[name] for name in expected} == {name: Counter(list(rows)) for name, rows in expected.items()}
    assert found["paths"] == Counter({(1, 2, 1): 1, (2, 3, 1): 1, (1, 3, 1): 2, (1, 3, 2): 1})


def test_nothing_gives_nothing(iterated: Iterated) -> None:
    assert [query.name for query in QUERIES if query.answer([], [])] == []
    assert_all(iterated, "random", [], [])


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_edits_change_what_it_answers(query: Query) -> None:
    for kind in query.suits:
        answers = [query.answer(edges, sources) for edges, sources in changing(kind, 6, seed=1, edits=200)]
        changes = sum(before != after for before, after in pairwise(answers))
        assert changes >= 5, kind


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_the_frontend_sees_the_tables_that_it_reads(query: Query) -> None:
    """Not the names that it defines itself."""
    names = {"edges", "sources", *(other.name for other in QUERIES)}
    read = {relation.key for relation in parsed(query.sql.replace("{", "w.").replace("}", "")).relations}
    assert read == {f"w.{name}" for name in names if f"{{{name}}}" in query.sql} != set()


@pytest.mark.parametrize("kind", KINDS)
def test_edits_are_of_all_sorts_and_keep_what_the_graph_is_like(kind: str) -> None:
    states = changing(kind, 6, seed=4, edits=600)
    assert states == changing(kind, 6, seed=4, edits=600) != changing(kind, 6, seed=5, edits=600)
    seen = [edge for edges, _ in states for edge in edges]
    assert {(a is None, b is None) for a, b, _ in seen} == {(False, False), (True, False), (False, True), (True, True)}
    assert any(a == b is not None for a, b, _ in seen) and any(w is None for _, _, w in seen)
    assert any(n > 1 for edges, _ in states for n in Counter(edges).values())
    assert any(None in sources for _, sources in states)
    wanted = Graph(kind, 6).edges_wanted
    mean = sum(len(edges) for edges, _ in states) / len(states)
    assert mean == pytest.approx(wanted, rel=0.25) and max(len(edges) for edges, _ in states) <= 2 * wanted
    pairs = set(shape(kind, 6))
    assert sum(edge[:2] in pairs for edge in seen) / len(seen) > 0.65
