"""A delta that is larger than the driver takes: TPC-H's models on a Spark cluster of two workers, with state in S3.

``python -m benchmarks.large_delta --scale 10 --share 0.13 --where random``

Each run changes such a share of the orders, and their lines. A rebuild is ``INSERT OVERWRITE`` of the same SQL on the
same workers, of tables that hold the changed contents as plain Parquet, which nobody's time is counted for. Beside the
queries, ``window`` ranks each customer's orders, and ``reach`` follows orders from one to the next by recursion.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import rounds
from benchmarks.results import add_options, write
from benchmarks.tpch.refresh_feed import RefreshFeed, Where
from benchmarks.tpch.run import QUERIES, sources
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.runtime.verify import contents, verify_model
from dbt_incremental_dd.storage.uris import spark_uri
from dbt_incremental_dd.trace.columns import require
from dbt_incremental_dd.trace.layout import Storage
from tests.servers.cluster import serving as cluster_of
from tests.servers.s3 import serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OTHERS = {
    "window": """
        SELECT o_custkey, o_orderkey, o_totalprice,
               rank() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) AS place
        FROM tpch.orders""",
    "reach": """
        WITH RECURSIVE reach (o_custkey, o_orderkey, steps) AS (
            SELECT o_custkey, o_orderkey, 0 FROM tpch.orders WHERE o_orderpriority = '1-URGENT'
            UNION ALL
            SELECT o.o_custkey, o.o_orderkey, r.steps + 1
            FROM reach r JOIN tpch.orders o ON o.o_orderkey = r.o_orderkey + 1 WHERE r.steps < 8)
        SELECT o_custkey, max(steps) AS steps, count(*) AS orders FROM reach GROUP BY o_custkey""",
}
_MODELS = ("q01", "q03", "q06", "q12", "q18", "window")

_BOUNDS = ("local_rows", "taken_rows", "probed_rows", "found_rows", "built_rows", "joined_rows")


def main() -> int:
    """0 when every model was exact at the end."""
    options = _arguments()
    folder = options.folder.resolve()
    _apart(_first, folder, options.scale)
    with (
        tempfile.TemporaryDirectory(dir=folder) as objects,
        tempfile.TemporaryDirectory(dir=folder) as hidden,
        serving(Path(objects)) as s3,
        cluster_of(Path(hidden), options.memory) as cluster,
    ):
        settings = {
            **cluster.settings,
            "spark.executor.memory": options.executor,
            "spark.driver.memory": options.driver,
            "spark.sql.shuffle.partitions": str(options.partitions),
            **dict(pair.split("=", 1) for pair in options.conf),
        }
        for plain in (
            "spark.sql.codegen.wholeStage",
            "spark.sql.codegen.factoryMode",
            "spark.executor.extraJavaOptions",
        ):
            settings.pop(plain)
        root = f"{s3.root}/state"
        spark = open_session(root, settings, s3.options)
        spark.sql("CREATE DATABASE IF NOT EXISTS tpch")
        few = dict.fromkeys(_BOUNDS, options.most) if options.most else {}
        storage = Storage(root, s3.options, Thresholds(**few))
        bench = _Bench(spark, storage, folder, options.only or list(_MODELS))
        results: dict[str, Any] = {"scale": options.scale, "share": options.share, "where": options.where}
        results["first_load"] = bench.run()
        print(f"driver: {_peak()}", flush=True)
        results["runs"] = []
        for _ in range(options.repeats):
            _apart(_refresh, folder, options.scale, options.where, options.share)
            results["runs"].append({**bench.run(), "peak": _peak()})
        bench.keep_plain()
        results["rebuild"] = bench.rebuild()
        write(options.json, results)
        wrong = bench.wrong() if options.verify else []
        spark.stop()
    print(f"WRONG: {', '.join(wrong)}" if wrong else f"done; driver: {_peak()}")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1, help="scale factor (default: 1)")
    parser.add_argument("--share", type=float, default=0.13, help="of the orders (default: 0.13)")
    parser.add_argument("--where", choices=["recent", "random"], default="random")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", nargs="*", help=f"queries, such as q03 (default: {' '.join(_MODELS)})")
    parser.add_argument("--memory", default="4g", help="of each worker (default: 4g)")
    parser.add_argument("--executor", default="3g", help="heap of each executor (default: 3g)")
    parser.add_argument("--driver", default="1g", help="heap of the driver's JVM (default: 1g)")
    parser.add_argument("--partitions", type=int, default=8, help="of a shuffle (default: 8)")
    parser.add_argument("--most", type=int, help="rows that the driver takes, instead of each of its thresholds")
    parser.add_argument("--conf", nargs="*", default=[], help="further settings of Spark, as NAME=VALUE")
    parser.add_argument("--verify", action="store_true", help="compare each model with Spark's batch answer at the end")
    add_options(parser, "large_delta")
    return parser.parse_args()


def _apart(work: Callable[..., None], *arguments: Any) -> None:
    """Does something in a process of its own, whose memory is not the driver's."""
    process = get_context("spawn").Process(target=work, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{work.__name__} ended with {process.exitcode}")


def _first(folder: Path, scale: float) -> None:
    RefreshFeed(folder, scale)


def _refresh(folder: Path, scale: float, where: Where, share: float) -> None:
    feed = RefreshFeed(folder, scale, resume=True)
    print(f"-- {where}: {feed.refresh(where, round(feed.orders * share))}", flush=True)


class _Bench:
    """The models over one state root."""

    def __init__(self, spark: SparkSession, storage: Storage, folder: Path, names: list[str]) -> None:
        self._spark = spark
        self._storage = storage
        self._sources = sources(folder)
        queries = {name: _OTHERS.get(name) or (QUERIES / f"{name}.sql").read_text() for name in names}
        self._models = rounds.models_of("tpch", queries, self._sources, rounds.ERROR)

    def run(self) -> dict[str, Any]:
        """Seconds of the intake and of each model."""
        run = Run(LazySession.of(self._spark), self._storage, "bench", None, lambda line: None)
        started = time.monotonic()
        for spec in self._sources.values():
            run.source(spec)
        seconds = {"intake": time.monotonic() - started}
        print(f"intake {seconds['intake']:.1f} s", flush=True)
        for model in self._models:
            before = time.monotonic()
            made = run.model(model)
            seconds[model.name] = time.monotonic() - before
            told = f"{made.input_rows} rows in, {made.rows_added} and {made.rows_removed} out"
            print(f"{model.name} {made.strategy} {seconds[model.name]:.1f} s, {told}", flush=True)
        run.finish()
        total = time.monotonic() - started
        print(f"{total:.1f} s in all", flush=True)
        return {"seconds": total, "parts": seconds}

    def keep_plain(self) -> None:
        """The sources' contents as plain tables."""
        for name in self._sources:
            table = name.split(".")[1]
            path = spark_uri(f"{self._storage.root}/plain/{table}")
            log, schema = require(self._storage, name)
            rows = contents(self._spark, log, schema, log.frontiers.last)
            rows.write.mode("overwrite").parquet(path)
            self._spark.read.parquet(path).createOrReplaceTempView(f"plain_{table}")

    def rebuild(self) -> dict[str, float]:
        """Seconds of building each table anew."""
        seconds = {}
        for model in self._models:
            started = time.monotonic()
            path = spark_uri(f"{self._storage.root}/rebuilt/{model.name}")
            self._spark.sql(model.sql.replace("tpch.", "plain_")).write.mode("overwrite").parquet(path)
            seconds[model.name] = time.monotonic() - started
            print(f"{model.name} rebuilt in {seconds[model.name]:.1f} s", flush=True)
        print(f"{sum(seconds.values()):.1f} s in all", flush=True)
        return seconds

    def wrong(self) -> list[str]:
        """Models that differ from Spark's batch answer."""
        found = []
        for model in self._models:
            exact = verify_model(self._spark, self._storage, model.name).exact
            print(f"{model.name} {'exact' if exact else 'WRONG'}", flush=True)
            found += [] if exact else [model.name]
        return found


def _peak() -> dict[str, float]:
    """The driver's greatest resident memory (GB): of this process, and of its JVM and whatever else it started."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"python": own / 1e6, "jvm": max(map(_resident, _children()), default=0.0)}


def _children() -> list[int]:
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(child) for path in children for child in path.read_text().split()]


def _resident(process: int) -> float:
    """GB, at its peak; 0 for a process that is no driver's JVM."""
    try:
        if b"SparkSubmit" not in Path(f"/proc/{process}/cmdline").read_bytes():
            return 0.0
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1e6 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)


if __name__ == "__main__":
    sys.exit(main())
