"""TPC-H's models with their state in S3 beside the same on a local disk, in turns: seconds of runs, and requests.

``python -m benchmarks.object_storage --scale 1 --orders 1500 --delay 30``

The server is beside the driver. A proxy before it counts requests, and delays each by so many ms.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import rounds
from benchmarks.results import add_options, write
from benchmarks.tpch.refresh_feed import RefreshFeed
from benchmarks.tpch.run import QUERIES, sources
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.trace.layout import Storage
from tests.servers.cluster import on_class_path
from tests.servers.s3 import serving
from tests.servers.slow_proxy import SlowProxy, slowed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROGRAMS = {"object_store": "driver", "delta-rs": "driver", "aws-sdk-cpp": "driver", "hadoop": "Spark"}
KINDS = ("nothing", "recent", "random")
"""What changes before a run."""


def main() -> int:
    """0 when every model was exact at the end."""
    options = _arguments()
    folder = options.folder.resolve()
    shutil.rmtree(folder / "state", ignore_errors=True)
    feed = RefreshFeed(folder, options.scale)
    with tempfile.TemporaryDirectory() as objects, serving(Path(objects)) as s3, slowed(s3.endpoint) as proxy:
        remote = {**s3.options, "AWS_ENDPOINT_URL": proxy.endpoint}
        settings = {**on_class_path(), **_hadoop(remote)}
        spark = open_session(str(folder / "state"), settings)
        spark.sql("CREATE DATABASE IF NOT EXISTS tpch")
        sides = {
            "disk": _Side(spark, Storage(str(folder / "state")), folder, options.only, options.threads),
            "S3": _Side(spark, Storage(f"{s3.root}/state", remote), folder, options.only, options.threads),
        }
        results = _measured(sides, feed, proxy, options)
        wrong = [name for side in sides.values() for name in side.wrong()] if options.verify else []
    write(options.json, results)
    print(f"WRONG: {', '.join(wrong)}" if wrong else "done")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor (default: 0.1)")
    parser.add_argument("--orders", type=int, default=150, help="changed in a round (default: 150)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each kind (default: 3)")
    parser.add_argument("--delay", type=float, nargs="+", default=[0, 30], help="ms for each request (default: 0 30)")
    parser.add_argument("--threads", type=int, default=1, help="models at a time (default: 1)")
    parser.add_argument("--only", nargs="*", help="queries, such as q03")
    parser.add_argument("--verify", action="store_true", help="compare each model with Spark's batch answer at the end")
    add_options(parser, "object_storage")
    return parser.parse_args()


class _Side:
    """The models over one state root."""

    def __init__(
        self, spark: SparkSession, storage: Storage, folder: Path, only: list[str] | None, threads: int
    ) -> None:
        self._spark = spark
        self._threads = threads
        self._storage = storage
        self._sources = sources(folder)
        self._models = rounds.requests("tpch", QUERIES, self._sources, only)

    def run(self) -> float:
        """Seconds of a run of everything."""
        started = time.monotonic()
        run = Run(LazySession.of(self._spark), self._storage, "bench", None, lambda line: None)
        for spec in self._sources.values():
            run.source(spec)
        with ThreadPoolExecutor(self._threads) as pool:  # as many as dbt's `threads`
            list(pool.map(run.model, self._models))
        run.finish()
        return time.monotonic() - started

    def wrong(self) -> list[str]:
        """Models that differ from Spark's batch answer."""
        found = (verify_model(self._spark, self._storage, model.name) for model in self._models)
        return [f"{one.model} in {self._storage.root}" for one in found if not one.exact]


def _measured(
    sides: dict[str, _Side], feed: RefreshFeed, proxy: SlowProxy, options: argparse.Namespace
) -> dict[str, Any]:
    for name, side in sides.items():
        print(f"first load, {name}: {side.run():.1f} s, {len(proxy.take())} requests", flush=True)
    results: dict[str, Any] = {
        **{name: getattr(options, name) for name in ("scale", "orders", "threads")},
        "runs": [],
    }
    for kind in KINDS:
        _change(feed, kind, options.orders)
        for side in sides.values():  # what only the first run of its kind does is not counted
            side.run()
        for delay in options.delay:
            seconds: dict[str, list[float]] = {name: [] for name in sides}
            requests: list[Counter[str]] = []
            read: list[int] = []
            for _ in range(options.repeats):
                _change(feed, kind, options.orders)
                for name, side in sides.items():
                    proxy.take(), proxy.take_bytes()
                    proxy.delay = delay / 1000 if name == "S3" else 0.0
                    seconds[name].append(side.run())
                    proxy.delay = 0.0
                    requests += [_counted(proxy)] if name == "S3" else []
                    read += [proxy.take_bytes()] if name == "S3" else []
            told = {name: statistics.median(found) for name, found in seconds.items()}
            total = sum(requests, Counter[str]())
            each = {what: count / options.repeats for what, count in total.most_common()}
            results["runs"].append({"changed": kind, "delay": delay, "seconds": told, "requests": each})
            results["runs"][-1]["bytes"] = statistics.mean(read)
            print(
                f"{kind} changed, {delay:g} ms a request: disk {told['disk']:.2f} s, S3 {told['S3']:.2f} s, "
                f"{told['S3'] / told['disk']:.2f} x; {sum(each.values()):.0f} requests, "
                f"{statistics.mean(read) / 1e6:.1f} MB read",
                flush=True,
            )
            for what, count in each.items():
                print(f"    {count:6.1f}  {what}")
    return results


def _change(feed: RefreshFeed, kind: str, orders: int) -> None:
    if kind != "nothing":
        feed.refresh("recent" if kind == "recent" else "random", orders)


def _counted(proxy: SlowProxy) -> Counter[str]:
    """The requests by who made them, method, and kind of object."""
    return Counter(f"{_program(agent)} {method} {_kind(path)}" for method, path, agent in proxy.take())


def _program(agent: str) -> str:
    return next((name for part, name in _PROGRAMS.items() if part in agent.lower()), agent[:20])


def _kind(path: str) -> str:
    name, _, query = path.partition("?")
    if "list-type" in query:
        return f"list {'log' if '_delta_log' in query else 'folder'}"
    for pattern, kind in (
        (r"/_delta_log/.*checkpoint|_last_checkpoint", "checkpoint"),
        (r"/_delta_log/", "entry"),
        (r"/manifests/", "manifest"),
        (r"/plan-", "plan"),
        (r"\.parquet%7D$", "data by a pattern"),
        (r"\.parquet$", "data"),
    ):
        if re.search(pattern, name):
            return kind
    return name.rsplit("/", 1)[-1]


def _hadoop(options: dict[str, str]) -> dict[str, str]:
    from dbt_incremental_dd.storage.uris import hadoop_settings

    return {f"spark.hadoop.{name}": value for name, value in hadoop_settings("s3://state", options).items()}


if __name__ == "__main__":
    sys.exit(main())
