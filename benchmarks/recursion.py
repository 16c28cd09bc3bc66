"""Connected components of a graph with a million edges, kept up to date: a few changed edges against the full fixed
point in the same session.

Kinds of change: ``leaves`` inserts and deletes edges to nodes with no other, ``random`` any edges, ``split`` deletes
the bridges by which parts hang together. What a run reads of what is stored, and writes, is counted in rows.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_incremental_dd.relation import stored
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.render import inner
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace import driver_reader
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
with recursive labels as (
  select node, min(label) as label
  from (
    select a as node, a as label from graph.edges
    union all select b, b from graph.edges
    union all select e.b, l.label from labels l join graph.edges e on e.a = l.node
    union all select e.a, l.label from labels l join graph.edges e on e.b = l.node
  ) as reached
  group by node
)
select node, label from labels
"""

Edge = tuple[int, int]


def main() -> int:
    """Prints a table, and the results as JSON where a file is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=1_000_000, help="(default: a million)")
    parser.add_argument("--nodes", type=int, default=400_000, help="(default: 400,000)")
    parser.add_argument("--changed", type=int, default=10, help="changed edges a round (default: 10)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each kind (default: 5)")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/recursion"))
    parser.add_argument("--json", type=Path, help="where to write the results")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    bench = _Bench(options.folder.resolve(), _graph(options.edges, options.nodes), options.changed)
    first = bench.run()
    print(f"first fixed point of {options.edges:,} edges: {first:.1f} s")
    results = []
    for kind in ("leaves", "random", "split"):
        found = bench.measure(kind, options.rounds)
        again = bench.rebuild()
        results.append({**found, "full_seconds": again, "ratio": found["seconds"] / again})
        print(
            f"{kind:<7} {found['seconds']:6.2f} s for {options.changed} edges, full {again:6.1f} s, "
            f"1/{again / found['seconds']:.0f}; rows read {found['read']:,}, written {found['written']:,}, "
            f"labels changed {found['labels']:,}"
        )
    exact = bench.is_exact()
    print("exact" if exact else "WRONG")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    return 0 if exact else 1


def _graph(edges: int, nodes: int) -> list[Edge]:
    """Random edges, and chains of 1,000 communities that hang on the rest by one edge each: bridges."""
    rnd = random.Random(7)
    inside = nodes * 9 // 10
    found = [(rnd.randrange(inside), rnd.randrange(inside)) for _ in range(edges * 9 // 10)]
    size = max(2, (nodes - inside) // 1_000)
    while len(found) < edges:
        start = inside + size * rnd.randrange((nodes - inside) // size)
        found.append((start + rnd.randrange(size), start + rnd.randrange(size)))
    found[-1_000:] = [(rnd.randrange(inside), inside + size * i) for i in range(1_000)]
    return found


class _Bench:
    """The model over a source of edges that come and go."""

    def __init__(self, folder: Path, edges: list[Edge], changed: int) -> None:
        self._folder = folder
        self._edges = edges
        self._changed = changed
        self._round = 0
        self._rnd = random.Random(11)
        self._leaf = 10_000_000
        self._leaves: list[Edge] = []
        self._storage = Storage(str(folder / "state"))
        self._spark: SparkSession = open_session(str(folder / "state"), {})
        self._spark.sql("CREATE DATABASE IF NOT EXISTS graph")
        (folder / "edges").mkdir(parents=True)
        self._write([(*edge, 1) for edge in edges])

    def _write(self, changes: list[tuple[int, int, int]]) -> None:
        a, b, diff = (pa.array(column, pa.int64()) for column in zip(*changes, strict=True))
        pq.write_table(pa.table({"a": a, "b": b, "diff": diff}), self._folder / f"edges/{self._round:05d}.parquet")
        self._round += 1

    def run(self, full_refresh: bool = False) -> float:
        """One run of the model, its source taken in before; seconds of the model alone."""
        settings = {"envelope": "changelog", "path": "edges", "format": "parquet", "diff_column": "diff"}
        spec = parse_source("graph.edges", "graph.edges", settings, {}, str(self._folder))
        request = ModelRequest(
            "graph.components",
            "graph.components",
            SQL,
            ModelConfig(fallback="error"),
            {"graph.edges": spec},
            full_refresh=full_refresh,
        )
        run = Run(LazySession.of(self._spark), self._storage, f"round{time.time_ns()}", None, lambda _: None)
        run.source(spec)
        started = time.monotonic()
        self.outcome = run.model(request)
        return time.monotonic() - started

    def rebuild(self) -> float:
        """The full fixed point, in the same session; seconds."""
        return self.run(full_refresh=True)

    def measure(self, kind: str, rounds: int) -> dict[str, Any]:
        """Medians over rounds."""
        seconds, read, written, labels = [], [], [], []
        self._change(kind)
        self.run()
        for _ in range(rounds):
            self._change(kind)
            with _counted() as counts:
                seconds.append(self.run())
            read.append(counts["read"])
            written.append(counts["written"])
            labels.append(self.outcome.rows_added)
        medians = {"read": read, "written": written, "labels": labels}
        return {
            "kind": kind,
            "seconds": statistics.median(seconds),
            **{k: round(statistics.median(v)) for k, v in medians.items()},
        }

    def _change(self, kind: str) -> None:
        half = self._changed // 2
        if kind == "leaves":
            gone, self._leaves = self._leaves[:half], self._leaves[half:]
            come = [(self._rnd.randrange(100_000), self._leaf + i) for i in range(self._changed - len(gone))]
            self._leaf += len(come)
            self._leaves += come
        elif kind == "random":
            gone = [self._edges.pop(self._rnd.randrange(len(self._edges) - 1_000)) for _ in range(half)]
            come = [(self._rnd.randrange(300_000), self._rnd.randrange(300_000)) for _ in range(self._changed - half)]
            self._edges[:0] = come
        else:
            gone, come = [self._edges.pop() for _ in range(self._changed)], []
        self._write([*((*edge, -1) for edge in gone), *((*edge, 1) for edge in come)])

    def is_exact(self) -> bool:
        """Whether the stored components are those of a union-find."""
        parent: dict[int, int] = {}

        def root(node: int) -> int:
            parent.setdefault(node, node)
            while parent[node] != node:
                parent[node] = parent[parent[node]]
                node = parent[node]
            return node

        for a, b in (*self._edges, *self._leaves):
            low, high = sorted((root(a), root(b)))
            parent[high] = low
        wanted = {(node, root(node)) for node in parent}
        found = self._spark.table("graph.components").toArrow().to_pydict()
        rows = list(zip(found["node"], found["label"], strict=True))
        return len(rows) == len(wanted) and set(rows) == wanted


@contextmanager
def _counted() -> Iterator[dict[str, int]]:
    """Rows that are read of stored files on the driver, and rows that are written to operators' traces."""
    counts = {"read": 0, "written": 0}
    read, append = driver_reader.read_files, inner.InnerTrace.append

    def reading(*args: Any, **options: Any) -> pa.Table:
        table = read(*args, **options)
        counts["read"] += table.num_rows
        return table

    def appending(trace: Any, rows: Any, t: int) -> Any:
        counts["written"] += rows.estimate
        return append(trace, rows, t)

    driver_reader.read_files = inner.read_files = stored.read_files = reading
    inner.InnerTrace.append = appending  # type: ignore[method-assign]
    yield counts
    driver_reader.read_files = inner.read_files = stored.read_files = read
    inner.InnerTrace.append = append  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
