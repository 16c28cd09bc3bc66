"""TPC-H under refreshes of its orders and lines: each query's run by deltas against a full rebuild.

``python -m benchmarks.tpch.refresh --scale 1 --shares 0.0001 0.001 0.01``

A rebuild is ``CREATE OR REPLACE TABLE ... AS`` of the same SQL over the plain Parquet files of the tables, in the same
session. A run's time is without the intake of the sources, which all models share, and which is told apart.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import meter, rounds
from benchmarks.tpch.feed import KEYS
from benchmarks.tpch.refresh_feed import RefreshFeed, Where
from benchmarks.tpch.run import QUERIES, sources
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> int:
    """0 when every model was exact at the end."""
    options = _arguments()
    folder = options.folder.resolve()
    feed = RefreshFeed(folder, options.scale)
    events = folder / "events" / str(time.time_ns())
    shutil.rmtree(folder / "state", ignore_errors=True)
    spark = rounds.session(folder, "tpch", meter.settings(events))
    bench = _Bench(spark, folder, feed, meter.Meter(events), options.only)
    results: dict[str, Any] = {"scale": options.scale, "orders": feed.orders}
    results["first_load"] = bench.first_load()
    results["rebuild"] = {name: bench.rebuild(name, options.repeats) for name in bench.models}
    results["refreshes"] = [
        {"where": where, "share": share, **bench.refreshes(where, share, options.repeats)}
        for where in options.where
        for share in options.shares
    ]
    for refresh in results["refreshes"]:
        _report(refresh, results["rebuild"])
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    wrong = [name for name in bench.models if not bench.is_exact(name)] if options.verify else []
    if options.verify:
        print(f"WRONG: {', '.join(wrong)}" if wrong else f"all exact: {len(bench.models)} models")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor (default: 0.1)")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.001], help="of orders changed (default: 0.001)")
    parser.add_argument("--where", nargs="+", default=["recent", "random"], choices=["recent", "random"])
    parser.add_argument("--repeats", type=int, default=3, help="refreshes of each kind, and rebuilds (default: 3)")
    parser.add_argument("--only", nargs="*", help="queries, such as q03")
    parser.add_argument("--verify", action="store_true", help="compare each model with Spark's batch answer at the end")
    parser.add_argument("--json", type=Path, help="where to write the results")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results/tpch_refresh"))
    return parser.parse_args()


class _Bench:
    """The models over the feed, and what their runs cost."""

    def __init__(
        self, spark: SparkSession, folder: Path, feed: RefreshFeed, meter: meter.Meter, only: list[str] | None
    ) -> None:
        self._spark = spark
        self._feed = feed
        self._meter = meter
        self._storage = Storage(str(folder / "state"))
        self._sources = sources(folder)
        self.models: dict[str, ModelRequest] = {
            request.name.split(".")[1]: request for request in rounds.requests("tpch", QUERIES, self._sources, only)
        }
        spark.sql("CREATE DATABASE IF NOT EXISTS plain")
        for name in KEYS:
            spark.read.parquet(str(feed.generated / f"{name}.parquet")).createOrReplaceTempView(f"plain_{name}")

    def first_load(self) -> dict[str, Any]:
        """Everything built from nothing: seconds of the sources' intake, and of each model."""
        return self._run()

    def _run(self) -> dict[str, Any]:
        run = Run(self._spark, self._storage, "bench", None, lambda line: None)
        self._meter.take()
        started = time.monotonic()
        for spec in self._sources.values():
            run.source(spec)
        found: dict[str, Any] = {"intake": {"seconds": time.monotonic() - started, **asdict(self._meter.take())}}
        print(f"intake {found['intake']['seconds']:.1f} s", flush=True)
        models = {}
        for name, request in self.models.items():
            made = run.model(request)
            work = self._meter.take()
            models[name] = {"seconds": made.seconds, "rows": made.rows_added + made.rows_removed, **asdict(work)}
            print(f"{name} {made.strategy} {made.seconds:.2f} s, {work}", flush=True)
        return {**found, "models": models}

    def rebuild(self, name: str, repeats: int) -> dict[str, Any]:
        """Medians of building the table anew."""
        sql = self.models[name].sql.replace("tpch.", "plain_")
        seconds = []
        for _ in range(repeats):
            self._meter.take()
            started = time.monotonic()
            self._spark.sql(f"DROP TABLE IF EXISTS plain.{name}")
            self._spark.sql(f"CREATE TABLE plain.{name} USING parquet AS {sql}")
            seconds.append(time.monotonic() - started)
            work = self._meter.take()
        print(f"{name} rebuilt in {statistics.median(seconds):.2f} s, {work}", flush=True)
        return {"seconds": statistics.median(seconds), **asdict(work)}

    def refreshes(self, where: Where, share: float, repeats: int) -> dict[str, Any]:
        """Medians over several refreshes, after one that is not counted."""
        runs = []
        for i in range(repeats + 1):
            made = self._feed.refresh(where, share)
            print(f"-- {where}, {share}: {made}", flush=True)
            run = self._run()
            runs += [run] if i else []
        models = {name: _medians([run["models"][name] for run in runs]) for name in self.models}
        return {"changed": asdict(made), "intake": _medians([run["intake"] for run in runs]), "models": models}

    def is_exact(self, name: str) -> bool:
        """Whether the model has the rows of Spark's batch answer."""
        return verify_model(self._spark, self._storage, f"tpch.{name}").exact


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def _report(refresh: dict[str, Any], rebuild: dict[str, Any]) -> None:
    """A line for each query, and the geometric mean of rebuild / differential."""
    print(f"\n{refresh['where']}, {refresh['share']:.2%}: intake {refresh['intake']['seconds']:.2f} s")
    ratios = []
    for name, found in refresh["models"].items():
        plain = rebuild[name]
        ratios.append(plain["seconds"] / found["seconds"])
        print(
            f"{name}  differential {found['seconds']:6.2f} s  rebuild {plain['seconds']:6.2f} s  {ratios[-1]:6.2f} x  "
            f"{found['jobs']:.0f} jobs, {found['read_bytes'] / 1e6:.1f} of {plain['read_bytes'] / 1e6:.1f} MB read"
        )
    print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.2f}, lowest {min(ratios):.2f}")


if __name__ == "__main__":
    sys.exit(main())
