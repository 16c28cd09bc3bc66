"""An aggregate over a join of stored inputs with millions of rows: 1,000 changed rows against a full rebuild.

Both are measured in one process and session, in turn. What is read of the stored inputs is counted from the log: the
files that the delta's probes choose, against all files.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from dbt_incremental_dd.relation import stored
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
select o.region, l.status, count(*) as lines, sum(l.amount) as amount
from bench.lines l join bench.orders o on o.order_id = l.order_id
group by o.region, l.status
"""


def main() -> int:
    """Prints a table, and the results as JSON where a file is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=10_000_000, help="rows of both inputs together (default: 10 million)"
    )
    parser.add_argument("--changed", type=int, default=1_000, help="changed rows a round (default: 1,000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each kind (default: 5)")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/join_aggregate"))
    parser.add_argument("--json", type=Path, help="where to write the results")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    folder = options.folder.resolve()
    spark = open_session(str(folder / "state"), {})
    _generate(spark, folder, options.rows)
    bench = _Bench(spark, folder, options.rows // 5, options.changed)
    started = time.monotonic()
    bench.run()
    print(f"first state of {options.rows:,} rows: {time.monotonic() - started:.1f} s")
    results = [bench.measure(kind, options.rounds) for kind in ("recent", "random")]
    exact = verify_model(spark, bench.storage, "bench.totals").exact
    for result in results:
        print(
            f"{result['kind']:<7} delta {result['delta_seconds']:.2f} s, rebuild {result['rebuild_seconds']:.2f} s, "
            f"ratio {result['ratio']:.3f}, files read {result['files_read']} of {result['files']}"
        )
    print("exact" if exact else "WRONG")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    return 0 if exact else 1


def _generate(spark: SparkSession, folder: Path, rows: int) -> None:
    orders = rows // 5
    frame = spark.range(orders).selectExpr(
        "id AS order_id", "CAST(id % 97 AS INT) AS region", "id * 7 % 1000 AS customer"
    )
    frame.write.parquet(str(folder / "orders"))
    lines = spark.range(rows - orders).selectExpr(
        "id AS line_id",
        "id DIV 4 AS order_id",
        "CAST(id % 10007 / 100 AS DECIMAL(12,2)) AS amount",
        "element_at(array('open', 'sent', 'back'), CAST(id % 3 + 1 AS INT)) AS status",
    )
    lines.write.parquet(str(folder / "lines"))


class _Bench:
    """The model, its sources, and rounds of changes."""

    def __init__(self, spark: SparkSession, folder: Path, orders: int, changed: int) -> None:
        self._spark = spark
        self._folder = folder
        self._orders = orders
        self._changed = changed
        self._round = 0
        self.storage = Storage(str(folder / "state"))
        spark.sql("CREATE DATABASE IF NOT EXISTS bench")
        inputs = {
            f"bench.{name}": parse_source(
                f"bench.{name}",
                f"bench.{name}",
                {"envelope": "append", "path": name, "format": "parquet"},
                {},
                str(folder),
            )
            for name in ("orders", "lines")
        }
        self._request = ModelRequest("bench.totals", "bench.totals", SQL, ModelConfig(), inputs)

    def run(self) -> float:
        """One run of the model; seconds."""
        started = time.monotonic()
        run = Run(LazySession.of(self._spark), self.storage, f"round{self._round}", None, lambda _: None)
        run.model(self._request)
        return time.monotonic() - started

    def measure(self, kind: str, rounds: int) -> dict[str, object]:
        """Medians over rounds of changed lines of recent, or of random orders."""
        deltas, rebuilds = [], []
        self._change(kind)
        self.run()
        read = 0
        for _ in range(rounds):
            self._change(kind)
            with _CountedFiles() as counted:
                deltas.append(self.run())
            read = counted.files
            rebuilds.append(self._rebuild())
        delta, rebuild = statistics.median(deltas), statistics.median(rebuilds)
        log = self.storage.collection("bench.orders").log()
        assert log is not None
        return {
            "kind": kind,
            "delta_seconds": delta,
            "rebuild_seconds": rebuild,
            "ratio": delta / rebuild,
            "files_read": read,
            "files": len(log.files),
        }

    def _change(self, kind: str) -> None:
        self._round += 1
        first = self._orders - self._changed
        step = max(1, self._orders // self._changed)
        orders = [
            first + i if kind == "recent" else (i * step + self._round) % self._orders for i in range(self._changed)
        ]
        table = pa.table(
            {
                "line_id": pa.array([10**12 + self._round * 10**6 + i for i in range(self._changed)], pa.int64()),
                "order_id": pa.array(orders, pa.int64()),
                "amount": pa.array([1] * self._changed, pa.decimal128(12, 2)),
                "status": pa.array(["open"] * self._changed, pa.string()),
            }
        )
        pq.write_table(table, self._folder / "lines" / f"round-{self._round:05d}.parquet")

    def _rebuild(self) -> float:
        started = time.monotonic()
        for name in ("orders", "lines"):
            self._spark.read.parquet(str(self._folder / name)).createOrReplaceTempView(f"plain_{name}")
        sql = SQL.replace("bench.lines", "plain_lines").replace("bench.orders", "plain_orders")
        self._spark.sql("DROP TABLE IF EXISTS bench.rebuilt")
        self._spark.sql(f"CREATE TABLE bench.rebuilt USING parquet AS {sql}")
        return time.monotonic() - started


class _CountedFiles:
    """Counts the files that probes of stored contents choose, on the driver or in Spark."""

    def __init__(self) -> None:
        self.files = 0

    def __enter__(self) -> _CountedFiles:
        self._updates, self._read_local = stored.updates, stored.read_files

        def updates(spark, uri, files, schema):  # type: ignore[no-untyped-def]
            self.files += len(files)
            return self._updates(spark, uri, files, schema)

        def read_files(storage, uri, files, schema, keys=None):  # type: ignore[no-untyped-def]
            self.files += len(files) if keys is not None else 0
            return self._read_local(storage, uri, files, schema, keys)

        stored.updates, stored.read_files = updates, read_files
        return self

    def __exit__(self, *_: object) -> None:
        stored.updates, stored.read_files = self._updates, self._read_local


if __name__ == "__main__":
    sys.exit(main())
