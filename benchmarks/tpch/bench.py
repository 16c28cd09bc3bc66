"""TPC-H's queries as models over a feed of refreshes, metered, and the same queries as full rebuilds."""

from __future__ import annotations

import resource
import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import rounds
from benchmarks.meter import Meter
from benchmarks.tpch.duckdb_rebuild import DuckDBRebuild
from benchmarks.tpch.feed import KEYS
from benchmarks.tpch.refresh_feed import RefreshFeed, Where
from benchmarks.tpch.run import QUERIES, sources
from dbt_incremental_dd.core.manifest import Manifest
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.request import ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Bench:
    """The models over the feed, and what their runs cost. The models' relations are in ``schema``."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        feed: RefreshFeed,
        meter: Meter,
        only: list[str] | None,
        schema: str = "tpch",
    ) -> None:
        self._spark = spark
        self._feed = feed
        self._meter = meter
        self._storage = Storage(str(folder / "state"))
        self._sources = sources(folder)
        self.models: dict[str, ModelRequest] = {
            request.name.split(".")[1]: request for request in rounds.requests(schema, QUERIES, self._sources, only)
        }
        queries = {name: model.sql for name, model in self.models.items()}
        self._duckdb = DuckDBRebuild(folder / "rebuilt.duckdb", feed.generated, queries)
        spark.sql("CREATE DATABASE IF NOT EXISTS plain")
        for name in KEYS:
            spark.read.parquet(str(feed.generated / f"{name}.parquet")).createOrReplaceTempView(f"plain_{name}")

    def run(self) -> dict[str, Any]:
        """One run of everything: what the sources' intake and each model cost."""
        run = Run(LazySession.of(self._spark), self._storage, "bench", None, lambda line: None)
        self._meter.take()
        started = time.monotonic()
        for spec in self._sources.values():
            run.source(spec)
        found: dict[str, Any] = {"intake": {"seconds": time.monotonic() - started, **asdict(self._meter.take())}}
        print(f"intake {found['intake']['seconds']:.1f} s", flush=True)
        models = {}
        for name, request in self.models.items():
            started = time.monotonic()
            made = run.model(request)
            took, work = time.monotonic() - started, self._meter.take()
            rows = {"rows": made.rows_added + made.rows_removed, "input_rows": made.input_rows}
            models[name] = {"seconds": took, **rows, **asdict(work)}
            print(f"{name} {made.strategy} {took:.2f} s, {work}", flush=True)
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

    def refreshes(self, where: Where, orders: int, repeats: int) -> dict[str, Any]:
        """Medians over several refreshes of so many orders, after one that is not counted; DuckDB's rebuild in turns
        with them."""
        runs, duckdb = [], []
        for i in range(repeats + 1):
            made = self._feed.refresh(where, orders)
            print(f"-- {where}: {made}", flush=True)
            run, rebuilt = self.run(), self._duckdb.run()
            print(f"{_total(run):.2f} s; DuckDB's rebuild {sum(rebuilt.values()):.2f} s", flush=True)
            runs += [run] if i else []
            duckdb += [rebuilt] if i else []
        models = {name: _medians([run["models"][name] for run in runs]) for name in self.models}
        return {
            "changed": asdict(made),
            "seconds": statistics.median(map(_total, runs)),
            "duckdb": statistics.median(sum(rebuilt.values()) for rebuilt in duckdb),
            "intake": _medians([run["intake"] for run in runs]),
            "models": models,
        }

    def state(self) -> dict[str, Any]:
        """Bytes after compaction: of each source's collection, of each model with its states, and of the sources' own
        Parquet files; and the driver's memory at its peak."""
        for line in compact(LazySession.of(self._spark), self._storage, retain_history=0):
            print(line, flush=True)
        kept = {name: _bytes(self._storage, spec.name) for name, spec in self._sources.items()}
        models = {name: _bytes(self._storage, request.name) for name, request in self.models.items()}
        own = {f"tpch.{name}": (self._feed.generated / f"{name}.parquet").stat().st_size for name in KEYS}
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {"sources": kept, "models": models, "own": own, "driver_memory": memory}

    def is_exact(self, name: str) -> bool:
        """Whether the model has the rows of Spark's batch answer."""
        return verify_model(self._spark, self._storage, self.models[name].name).exact


def _bytes(storage: Storage, name: str) -> int:
    """Of a collection's live files, those of its inner traces included."""
    place = storage.collection(name)
    log = place.log()
    if log is None:
        return 0
    manifest = place.read_manifest(log.manifest) or Manifest()
    logs = [log, *(place.inner(state).log_at(version) for state, version in manifest.inner.items())]
    return sum(file.bytes for log in logs for file in log.files)


def _total(run: dict[str, Any]) -> float:
    """Seconds of a whole run, the sources' intake included."""
    return float(run["intake"]["seconds"] + sum(model["seconds"] for model in run["models"].values()))


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}
