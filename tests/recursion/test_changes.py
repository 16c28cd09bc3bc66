"""Recursive models over graphs that change edge by edge, each compared with its reference after every run.

Spark itself cannot run these queries, so there is no batch answer to compare with.
``DD_EDITS=1000 DD_SEED=7 pytest -m slow tests/recursion`` runs other edits than usual, and more of them; with
``DD_FEW=1`` of the queries that the suite runs always.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd import open
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.trace import tiers
from tests.oracle import Table, World
from tests.recursion.graphs import KINDS, Edit, Graph
from tests.recursion.queries import EDGES, SOURCES, queries
from tests.recursion.reference import Answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {"random": 7, "chain": 7, "cyclic": 6, "star": 6, "clique": 4}
LARGE = {"random": 12, "chain": 14, "cyclic": 11, "star": 10, "clique": 5}

_EDITS = int(os.environ.get("DD_EDITS", "200"))
_FEW = bool(os.environ.get("DD_FEW"))
_SEED = int(os.environ.get("DD_SEED", "1"))
_SHOWN = 8


class Changing:
    """A graph in a world, all queries that suit it as models over it, and its edits, numbered from 1."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        kind: str,
        size: int,
        seed: int,
        extra: bool,
        empty: bool = False,
        thresholds: Thresholds | None = None,
    ) -> None:
        self._rng = random.Random(f"{kind} {seed}")
        self._graph = Graph(kind, size)
        self._title = f"{kind} graph of {size}, seed {seed}"
        self._number = 0
        self.edges = [] if empty else self._graph.first_edges(self._rng)
        self.sources = [] if empty else self._graph.first_sources(self._rng)
        tables = {"edges": Table(EDGES, self.edges), "sources": Table(SOURCES, self.sources)}
        self._world = World(spark, folder, tables, thresholds)
        self._queries = {query.name: query for query in queries(kind, extra)}
        for query in self._queries.values():
            self._world.model(query.name, query.sql)
        self._run("first")

    def edit(self, count: int = 1) -> None:
        """So many edits at random, and a run that takes them in at once."""
        edits = []
        for _ in range(count):
            edits.append(self._graph.edit(self.edges, self.sources, self._rng))
            self._apply(edits[-1])
        self._number += count
        self._run(f"edit {self._number} ({', '.join(map(_told, edits))})")

    def edit_by(self, *edits: Edit) -> None:
        """These edits, and a run."""
        for edit in edits:
            self._apply(edit)
        self._run(f"edits {', '.join(map(_told, edits))}")

    def delete_all(self) -> None:
        """All edges and sources go."""
        self._world.delete("edges", list(self.edges))
        self._world.delete("sources", list(self.sources))
        self._run("all are gone")

    def insert_first(self) -> None:
        """A whole graph comes."""
        self._world.insert("edges", self._graph.first_edges(self._rng))
        self._world.insert("sources", self._graph.first_sources(self._rng))
        self._run("a graph has come")

    def _run(self, when: str) -> None:
        """Every model by its delta; all that are wrong are told."""
        failures = self._world.step_and_check_each(self._check, fallback="error")
        assert not failures, "\n\n".join(f"{self._title}, {when}: {failure}" for failure in failures)

    def _apply(self, edit: Edit) -> None:
        change = self._world.insert if edit.diff > 0 else self._world.delete
        change(edit.table, [edit.row])

    def _check(self, name: str) -> None:
        right = self._queries[name].answer(self.edges, [a for (a,) in self.sources])
        found = self._found(name)
        assert found == right, f"{name}: missing {_shown(right - found)}; unexpected {_shown(found - right)}"

    def _found(self, name: str) -> Answer:
        """The model's relation, by a Spark job, after each tenth run; else what is stored, without one."""
        if self._number % 10 == 0:
            return Counter(tuple(row) for row in self._world.found(name).collect())
        stored = open(str(self._world.storage.root))[f"{self._world.schema}.{name}"].as_of()
        found: Answer = Counter()
        for *row, count in zip(*(column.to_pylist() for column in stored.columns), strict=True):
            found[tuple(row)] += count
        return found


def _told(edit: Edit) -> str:
    return f"{'+' if edit.diff > 0 else '-'} {edit.table} {edit.row}"


def _shown(rows: Answer) -> str:
    """Some of them, and how many they are."""
    told = [f"{row} x {n}" if n > 1 else f"{row}" for row, n in list(rows.items())[:_SHOWN]]
    return f"{rows.total()} rows: {', '.join(told)}{', ...' if len(rows) > _SHOWN else ''}" if rows else "none"


@pytest.fixture
def merged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are merged as soon as there are two of a size."""
    monkeypatch.setattr(tiers, "FAN", 2)


@pytest.mark.usefixtures("merged_at_once")
@pytest.mark.parametrize("kind", ("chain", "cyclic", "star"))
def test_it_is_exact_after_each_edit(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    changing = Changing(spark, tmp_path, kind, SMALL[kind], seed=1, extra=False)
    for _ in range(6):
        changing.edit()


def _edge(diff: int, a: int, b: int, w: int = 1) -> Edit:
    return Edit("edges", (a, b, w), diff)


@pytest.mark.usefixtures("merged_at_once")
def test_rows_that_only_support_each_other_go(spark: SparkSession, tmp_path: Path) -> None:
    """A ring is entered by one edge, and leads to another ring by one: without it each keeps to itself. All queries, from
    nothing and back."""
    changing = Changing(spark, tmp_path, "random", SMALL["random"], seed=0, extra=True, empty=True)
    rings = [_edge(1, *pair) for pair in ((1, 2), (2, 3), (3, 1), (4, 5), (5, 6), (6, 4))]
    changing.edit_by(Edit("sources", (0,), 1), _edge(1, 0, 1), _edge(1, 3, 5, 4), *rings)
    changing.edit_by(_edge(-1, 0, 1))
    changing.edit_by(_edge(1, 0, 3), _edge(-1, 3, 1))
    changing.edit_by(_edge(-1, 3, 5, 4))
    changing.edit_by(_edge(1, 3, 1), _edge(1, 3, 6, 9))
    changing.delete_all()
    changing.insert_first()
    changing.edit(count=6)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_all_queries_are_exact_after_each_of_many_edits(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    changing = Changing(spark, tmp_path, kind, LARGE[kind], seed=_SEED, extra=not _FEW)
    for _ in range(_EDITS):
        changing.edit()
    changing.delete_all()
    changing.insert_first()


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.usefixtures("merged_at_once")
@pytest.mark.parametrize("kind", KINDS)
def test_all_queries_are_exact_where_nothing_is_computed_on_the_driver(
    spark: SparkSession, tmp_path: Path, in_spark: Thresholds, kind: str
) -> None:
    changing = Changing(spark, tmp_path, kind, SMALL[kind], seed=3, extra=not _FEW, thresholds=in_spark)
    for count in (1, 1, 1, 1, 5, 1, 1, 10):
        changing.edit(count)
