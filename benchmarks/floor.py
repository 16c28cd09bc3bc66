"""The floor: one new row in one aggregate model, warm, against one minimal Spark job in the same session.

``python -m benchmarks.floor --rows 1000000``

Where the time goes is measured by the clock around the engine's own functions; what one of them spends in another is
the other's. "Spark" is what is left of asking it for rows: analysis, planning and the job.
"""

from __future__ import annotations

import argparse
import pkgutil
import shutil
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import meter, rounds
from benchmarks.results import add_options, write
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage

SQL = "select region, count(*) as orders, sum(amount) as amount from floor.orders group by region"
PARTS = {
    "plan": ("dbt_incremental_dd.runtime.model.compile_cached",),
    "logs": ("dbt_incremental_dd.trace.log_loader.load",),
    "commit": ("dbt_incremental_dd.trace.log.Log.commit",),
    "read": ("dbt_incremental_dd.relation.stored.read_files", "dbt_incremental_dd.render.inner.read_files"),
    "write": ("dbt_incremental_dd.relation.stored.write_arrow",),
    "Spark": ("dbt_incremental_dd.relation.placed_rows.if_few",),
    "relation": ("dbt_incremental_dd.runtime.work.publish",),
}


def main() -> int:
    """0 when the model is exact at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="stored before the change (default: 1 million)")
    parser.add_argument("--changed", type=int, default=1, help="rows of each change (default: 1)")
    parser.add_argument("--repeats", type=int, default=15, help="changes, after five to warm up (default: 15)")
    add_options(parser, "floor")
    options = parser.parse_args()
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    spark = rounds.session(folder, "floor", meter.settings(folder / "events"))
    metered = meter.Meter(folder / "events")
    storage = Storage(str(folder / "state"))
    model = _model(folder)
    _write(folder, 0, options.rows)
    Run(LazySession.of(spark), storage, "first", None, lambda line: None).model(model)
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(1, options.repeats + 6):
        _write(folder, number, options.changed)
        run = Run(LazySession.of(spark), storage, str(number), None, lambda line: None)
        intake = _timed(lambda run=run: [run.source(spec) for spec in model.inputs.values()])  # type: ignore[misc]
        metered.take()
        clock = _Clock()
        with clock.around(PARTS):
            seconds = _timed(lambda run=run: run.model(model))  # type: ignore[misc]
        work = metered.take()
        job = _timed(lambda: spark.range(1).selectExpr("sum(id)").collect())
        if number > 5:
            told = {"intake": intake, "model": seconds, "one job": job, "jobs": work.jobs, "read_rows": work.read_rows}
            for name, value in told.items():
                found[name].append(value)
            for part in PARTS:
                found[part].append(clock.spent[part])
    medians = {name: statistics.median(values) for name, values in found.items()}
    medians["other"] = medians["model"] - sum(medians[part] for part in PARTS)
    _report(medians, options.changed)
    write(options.json, medians)
    return 0 if verify_model(spark, storage, model.name).exact else 1


def _model(folder: Path) -> ModelRequest:
    settings = {"envelope": "append", "format": "parquet", "path": str(folder / "orders")}
    source = parse_source("floor.orders", "floor.orders", settings, {}, str(folder))
    return ModelRequest("floor.regions", "floor.regions", SQL, ModelConfig(fallback="error"), {"floor.orders": source})


def _write(folder: Path, number: int, rows: int) -> None:
    (folder / "orders").mkdir(exist_ok=True, parents=True)
    regions = pa.array([f"region {i % 50}" for i in range(rows)])
    amounts = pa.array(range(rows), pa.int64()).cast(pa.decimal128(38, 0)).cast(pa.decimal128(12, 2))
    pq.write_table(pa.table({"region": regions, "amount": amounts}), folder / "orders" / f"{number:05d}.parquet")


def _timed(call: Callable[[], Any]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


class _Clock:
    """Seconds spent in functions, by part; a call inside another counts for itself alone."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._open: list[str] = []
        self._since = time.monotonic()

    def around(self, parts: dict[str, tuple[str, ...]]) -> ExitStack:
        """A context in which the named functions are timed."""
        stack = ExitStack()
        for part, name in ((part, name) for part, names in parts.items() for name in names):
            stack.enter_context(mock.patch(name, self._wrapped(part, pkgutil.resolve_name(name))))
        return stack

    def _wrapped(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self._switch()
            self._open.append(part)
            try:
                return function(*args, **options)
            finally:
                self._switch()
                self._open.pop()

        return call

    def _switch(self) -> None:
        now = time.monotonic()
        if self._open:
            self.spent[self._open[-1]] += now - self._since
        self._since = now


def _report(medians: dict[str, float], changed: int) -> None:
    print(f"one model, {changed} changed: {medians['model']:.3f} s, {medians['jobs']:.0f} Spark jobs")
    print(f"rows read, with the model's own states: {medians['read_rows']:.0f}")
    print(f"intake of the source: {medians['intake']:.3f} s")
    print(f"one minimal Spark job: {medians['one job']:.3f} s; ratio {medians['model'] / medians['one job']:.1f}")
    for part in (*PARTS, "other"):
        print(f"  {part:<10} {medians[part]:.3f} s")


if __name__ == "__main__":
    sys.exit(main())
