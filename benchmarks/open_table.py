"""What an open table costs beside the diff log: TPC-H's queries and a wide join of the lines, with ``output`` and
without, in turns, in the same run.

``python -m benchmarks.open_table --scale 1``

Each query is a model twice, over the same sources. A refresh changes a share of the orders and their lines, the latest
or random ones. Both models of a query are run one after the other, each first in every second refresh. At the end
delta-rs reads each table, which is compared with its collection by the number of rows and their hashes.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from benchmarks import rounds
from benchmarks.results import add_options, geometric_mean, write
from benchmarks.tpch.refresh_feed import RefreshFeed
from benchmarks.tpch.run import QUERIES, sources
from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.trace.layout import Storage

_LINES = """
SELECT l.*, o.o_orderdate, o.o_orderstatus, o.o_orderpriority, c.c_name, c.c_mktsegment
FROM tpch.lineitem l JOIN tpch.orders o ON l.l_orderkey = o.o_orderkey JOIN tpch.customer c ON o.o_custkey = c.c_custkey
"""
"""A row for each line."""


def main() -> int:
    """0 when every table had the rows of its collection at the end."""
    options = _arguments()
    folder = options.folder.resolve()
    shutil.rmtree(folder / "state", ignore_errors=True)
    feed = RefreshFeed(folder, options.scale, False)
    spark = rounds.session(folder, "tpch")
    spark.sql("CREATE DATABASE IF NOT EXISTS shown")
    read = sources(folder)
    queries = {path.stem: path.read_text() for path in sorted(QUERIES.glob("q*.sql"))} | {"lines": _LINES}
    queries = {name: sql for name, sql in queries.items() if name in (options.only or queries)}
    config = ModelConfig(fallback="error", strategy="delta")
    plain = rounds.models_of("tpch", queries, read, config)
    shown = rounds.models_of("shown", queries, read, replace(config, output="delta"))
    bench = _Bench(Storage(str(folder / "state")), LazySession.of(spark), list(read.values()), plain, shown)
    found: dict[str, Any] = {"scale": options.scale, "repeats": options.repeats, "refreshes": []}
    found["first_load"] = bench.run(0)
    for where in ("recent", "random"):
        made = []
        for number in range(options.repeats + 1):
            feed.refresh(where, round(feed.orders * options.share))
            made.append(bench.run(number))
        seconds = {
            name: [statistics.median(pair) for pair in zip(*(one[name] for one in made[1:]), strict=True)]
            for name in queries
        }
        found["refreshes"].append({"where": where, "share": options.share, "seconds": seconds})
        _report(where, seconds)
    found["bytes"] = {model.name: bench.bytes(model.name) for model in shown}
    write(options.json, found)
    wrong = [model.name for model in shown if not bench.is_same(model.name)]
    print(f"WRONG: {', '.join(wrong)}" if wrong else f"all tables as their collections: {len(shown)}")
    return 1 if wrong else 0


class _Bench:
    """The models without and with a table."""

    def __init__(
        self,
        storage: Storage,
        session: LazySession,
        read: list[Any],
        plain: list[ModelRequest],
        shown: list[ModelRequest],
    ) -> None:
        self._storage = storage
        self._session = session
        self._read = read
        self._pairs = list(zip(plain, shown, strict=True))

    def run(self, number: int) -> dict[str, tuple[float, float]]:
        """Seconds of each model, without and with its table."""
        run = Run(self._session, self._storage, "bench", None, lambda line: None)
        for spec in self._read:
            run.source(spec)
        found = {}
        for pair in self._pairs:
            first, second = pair if number % 2 else reversed(pair)
            seconds = {model.name: run.model(model).seconds for model in (first, second)}
            found[pair[0].name.split(".")[1]] = (seconds[pair[0].name], seconds[pair[1].name])
            print(pair[0].name, *(f"{took:.3f} s" for took in found[pair[0].name.split(".")[1]]), flush=True)
        return found

    def bytes(self, name: str) -> tuple[int, int]:
        """Of the collection's live files, and of the table's."""
        collection = Collection(self._storage, name)
        table = DeltaTable(collection.place.table_uri)
        sizes = pa.table(table.get_add_actions(flatten=True))["size_bytes"].to_pylist()
        return sum(file.bytes for file in collection.files), sum(sizes)

    def is_same(self, name: str) -> bool:
        """Whether the table has the collection's rows: as many, with the same sum of hashes."""
        collection = Collection(self._storage, name)
        uri = collection.place.table_uri
        rows = pa.table(QueryBuilder().register("t", DeltaTable(uri)).execute("SELECT * FROM t").read_all())
        return _digest(rows, "1") == _digest(collection.as_of(), "dd_diff")


def _digest(rows: pa.Table, diff: str) -> Any:
    connection = duckdb.connect()
    connection.register("given", rows)
    names = ", ".join(f'"{name}"::VARCHAR' for name in rows.column_names if name != "dd_diff")
    sql = f"SELECT sum({diff}), sum(hash({names})::HUGEINT * {diff}) FROM given"
    return connection.sql(sql).fetchall()[0]


def _report(where: str, seconds: dict[str, list[float]]) -> None:
    print(f"\n{where}")
    for name, (without, with_table) in seconds.items():
        print(f"{name}  without {without:.3f} s  with {with_table:.3f} s  {with_table / without:.2f}")
    totals = [sum(pair[i] for pair in seconds.values()) for i in (0, 1)]
    ratios = [with_table / without for without, with_table in seconds.values()]
    print(
        f"all {totals[0]:.2f} and {totals[1]:.2f} s: {totals[1] / totals[0]:.2f}; mean {geometric_mean(ratios):.2f}, "
        f"most {max(ratios):.2f}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="scale factor (default: 1)")
    parser.add_argument("--share", type=float, default=0.001, help="of the orders changed (default: 0.001)")
    parser.add_argument("--repeats", type=int, default=4, help="refreshes of each kind (default: 4)")
    parser.add_argument("--only", nargs="*", help="queries, such as q03, or lines")
    add_options(parser, "open_table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
