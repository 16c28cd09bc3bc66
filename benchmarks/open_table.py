"""What an open table costs beside the diff log: TPC-H's queries and a wide join of the lines, with ``output`` and
without, in turns, in the same run.

``python -m benchmarks.open_table --scale 1 --format delta iceberg``

Each query is a model without a table, and one for each format, over the same sources. A refresh changes a share of the
orders and their lines, the latest or random ones. The models of a query are run one after the other, each first in
turn. At the end a library that knows the format reads each table, which is compared with its collection by the number
of rows and their hashes.
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
from pyiceberg.table import StaticTable

from benchmarks import rounds
from benchmarks.results import add_options, geometric_mean, write
from benchmarks.tpch.refresh_feed import RefreshFeed
from benchmarks.tpch.run import QUERIES, sources
from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.open_table.registry import FORMATS
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
    databases = {output: "shown" if output == "delta" else f"shown_{output}" for output in options.format}
    for database in databases.values():
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    read = sources(folder)
    queries = {path.stem: path.read_text() for path in sorted(QUERIES.glob("q*.sql"))} | {"lines": _LINES}
    queries = {name: sql for name, sql in queries.items() if name in (options.only or queries)}
    config = ModelConfig(fallback="error", strategy="delta")
    plain = rounds.models_of("tpch", queries, read, config)
    shown = [
        rounds.models_of(database, queries, read, replace(config, output=output))
        for output, database in databases.items()
    ]
    bench = _Bench(Storage(str(folder / "state")), LazySession.of(spark), list(read.values()), [plain, *shown])
    found: dict[str, Any] = {"scale": options.scale, "repeats": options.repeats, "formats": options.format}
    found["refreshes"] = []
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
        _report(where, seconds, options.format)
    found["bytes"] = {model.name: bench.bytes(of_query) for model, *of_query in bench.models}
    write(options.json, found)
    kept = [model for models in shown for model in models]
    wrong = [model.name for model in kept if not bench.is_same(model.name, model.config.output)]
    print(f"WRONG: {', '.join(wrong)}" if wrong else f"all tables as their collections: {len(kept)}")
    return 1 if wrong else 0


class _Bench:
    """``models``: of each query those without and with a table."""

    def __init__(
        self,
        storage: Storage,
        session: LazySession,
        read: list[Any],
        models: list[list[ModelRequest]],
    ) -> None:
        self._storage = storage
        self._session = session
        self._read = read
        self.models = list(zip(*models, strict=True))

    def run(self, number: int) -> dict[str, tuple[float, ...]]:
        """Seconds of each query's models."""
        run = Run(self._session, self._storage, "bench", None, lambda line: None)
        for spec in self._read:
            run.source(spec)
        found = {}
        for models in self.models:
            first = number % len(models)
            seconds = {model.name: run.model(model).seconds for model in (*models[first:], *models[:first])}
            query = models[0].name.split(".")[1]
            found[query] = tuple(seconds[model.name] for model in models)
            print(query, *(f"{took:.3f} s" for took in found[query]), flush=True)
        return found

    def bytes(self, models: list[ModelRequest]) -> list[int]:
        """Of the collection's live files, and of each table's."""
        sizes = [sum(file.bytes for file in self._collection(models[0].name).files)]
        for model in models:
            uri = self._collection(model.name).place.table_uri
            version = FORMATS[model.config.output].load(self._storage, uri)
            sizes.append(0 if version is None else sum(file.data.bytes for file in version.files))
        return sizes

    def is_same(self, name: str, output: str) -> bool:
        """Whether the table has the collection's rows: as many, with the same sum of hashes."""
        collection = self._collection(name)
        rows = _READERS[output](collection.place.table_uri).select(list(collection.schema.names))
        return _digest(rows, "1") == _digest(collection.as_of(), "dd_diff")

    def _collection(self, name: str) -> Collection:
        return Collection(self._storage, name)


def _by_delta_rs(uri: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(uri)).execute("SELECT * FROM t").read_all())


def _by_pyiceberg(uri: str) -> pa.Table:
    return StaticTable.from_metadata(uri).scan().to_arrow()


_READERS = {"delta": _by_delta_rs, "iceberg": _by_pyiceberg}


def _digest(rows: pa.Table, diff: str) -> Any:
    connection = duckdb.connect()
    connection.register("given", rows)
    names = ", ".join(f'"{name}"::VARCHAR' for name in rows.column_names if name != "dd_diff")
    sql = f"SELECT sum({diff}), sum(hash({names})::HUGEINT * {diff}) FROM given"
    return connection.sql(sql).fetchall()[0]


def _report(where: str, seconds: dict[str, list[float]], formats: list[str]) -> None:
    print(f"\n{where}: seconds without, and with {', '.join(formats)}")
    for name, took in seconds.items():
        print(name, *(f"{one:.3f}" for one in took), *(f"{one / took[0]:.2f}" for one in took[1:]))
    totals = [sum(column) for column in zip(*seconds.values(), strict=True)]
    for number, output in enumerate(formats, 1):
        ratios = [took[number] / took[0] for took in seconds.values()]
        print(
            f"all {totals[0]:.2f} and {totals[number]:.2f} s with {output}: {totals[number] / totals[0]:.2f}; "
            f"mean {geometric_mean(ratios):.2f}, most {max(ratios):.2f}"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="scale factor (default: 1)")
    parser.add_argument("--share", type=float, default=0.001, help="of the orders changed (default: 0.001)")
    parser.add_argument("--repeats", type=int, default=4, help="refreshes of each kind (default: 4)")
    parser.add_argument(
        "--format", nargs="+", choices=list(FORMATS), default=["delta"], help="of tables (default: delta)"
    )
    parser.add_argument("--only", nargs="*", help="queries, such as q03, or lines")
    add_options(parser, "open_table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
