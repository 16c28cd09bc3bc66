"""The limit, beside us: TPC-H's q03, q09 and q18 in differential dataflow itself, with the same changes as our models.

``python -m benchmarks.limit.run --scale 1 --shares 0.0001 0.001``

It needs Rust: the program in ``benchmarks/limit/dataflow`` is compiled first. It holds all in memory and stores
nothing, while our runs start from stored state, and commit to it. Each query runs in a process of its own, and
``together`` holds all three in one dataflow, which arranges each table once. The dataflow's seconds are those from
updates in memory until the answers are up to date; what it took to find the updates, and to read them, is not in them.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import meter, rounds
from benchmarks.limit.dataflow_process import TABLES, Dataflow, build
from benchmarks.limit.tables import Tables
from benchmarks.results import add_options, write
from benchmarks.tpch.bench import Bench
from benchmarks.tpch.refresh_feed import RefreshFeed, Where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = tuple(TABLES)
TOGETHER = "together"


def main() -> int:
    """0 when all answers were exact at the end."""
    options = _arguments()
    program = build()
    folder = options.folder.resolve()
    feed = RefreshFeed(folder, options.scale)
    events = folder / "events" / str(time.time_ns())
    shutil.rmtree(folder / "state", ignore_errors=True)
    spark = rounds.session(folder, "tpch", meter.settings(events))
    bench = Bench(spark, folder, feed, meter.Meter(events), list(QUERIES))
    results = {name: getattr(options, name) for name in ("scale", "repeats", "workers")}
    with ExitStack() as stack:
        flows = {
            name: stack.enter_context(Dataflow(program, QUERIES if name == TOGETHER else [name], options.workers))
            for name in options.dataflows
        }
        sides = _Sides(folder, feed, bench, flows)
        results |= {"orders": feed.orders, "first_load": sides.first_load(), "refreshes": []}
        _report("first load", results["first_load"])
        for where, share in ((where, share) for where in options.where for share in options.shares):
            made = sides.refreshes(where, round(feed.orders * share), options.repeats)
            results["refreshes"].append({"where": where, "share": share, **made})
            _report(f"{where}, {share:.2%}: {made['changed']}", made)
        results["memory"] = {name: flow.peak_memory() for name, flow in flows.items()}
        for name, size in results["memory"].items():
            print(f"dataflow {name}: {size / 1e6:.0f} MB at its peak")
        write(options.json, results)
        return 1 if options.verify and sides.wrong(spark) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor (default: 0.1)")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.001], help="of orders changed (default: 0.001)")
    parser.add_argument("--where", nargs="+", default=["recent", "random"], choices=["recent", "random"])
    parser.add_argument("--repeats", type=int, default=3, help="refreshes of each kind (default: 3)")
    parser.add_argument("--workers", type=int, default=1, help="threads of each dataflow (default: 1)")
    flows = (*QUERIES, TOGETHER)
    parser.add_argument("--dataflows", nargs="+", default=flows, choices=flows, help="at once in memory (default: all)")
    parser.add_argument(
        "--verify", action="store_true", help="compare all answers with DuckDB's and Spark's at the end"
    )
    add_options(parser, "limit")
    return parser.parse_args()


class _Sides:
    """Our models and the dataflows, which get the same changes in turns."""

    def __init__(self, folder: Path, feed: RefreshFeed, bench: Bench, flows: Mapping[str, Dataflow]) -> None:
        self._folder = folder
        self._feed = feed
        self._bench = bench
        self._flows = flows
        self._tables = Tables(folder, feed.generated)

    def first_load(self) -> dict[str, Any]:
        """The seconds of both, from empty."""
        return self._run(self._tables.all())

    def refreshes(self, where: Where, orders: int, repeats: int) -> dict[str, Any]:
        """Medians over several refreshes of so many orders, after one that is not counted."""
        runs = []
        for _ in range(repeats + 1):
            made = self._feed.refresh(where, orders)
            print(f"-- {where}: {made}", flush=True)
            runs.append(self._run(self._tables.advance()))
        return {"changed": asdict(made), **_medians(runs[1:])}

    def _run(self, updates: Mapping[str, Path]) -> dict[str, Any]:
        ours = self._bench.run()
        found = {name: flow.update(updates) for name, flow in self._flows.items()}
        return {
            "intake": ours["intake"]["seconds"],
            "ours": {name: model["seconds"] for name, model in ours["models"].items()},
            "dataflow": {name: took.seconds for name, took in found.items()},
            "reading": {name: took.reading for name, took in found.items()},
        }

    def wrong(self, spark: SparkSession) -> list[str]:
        """Answers that are not exact; each is told as soon as it is known.

        Our models are compared with Spark's batch answer of the same SQL, the dataflow's answers with DuckDB's, and
        with our models' rows, so that both sides also had the same changes.
        """
        wrong = []
        for name in QUERIES:
            differences = {"our model": 0 if self._bench.is_exact(name) else 1}
            rows = spark.table(self._bench.models[name].relation).toArrow()
            for flow_name, flow in self._flows.items():
                if name in flow.queries:
                    flow.answer(name, self._folder / "answer.csv")
                    answer = self._tables.load_answer(name, self._folder / "answer.csv")
                    for other, query in (("DuckDB", self._bench.models[name].sql), ("our model", "FROM our_rows")):
                        found = self._tables.differences(f"FROM {answer}", query, {"our_rows": rows})
                        differences[f"dataflow {flow_name} beside {other}"] = found
            for what, count in differences.items():
                print(f"{name} {what}: {f'WRONG, {count} rows' if count else 'exact'}", flush=True)
            wrong += [f"{name} {what}" for what, count in differences.items() if count]
        print(f"WRONG: {', '.join(wrong)}" if wrong else "all exact")
        return wrong


def _medians(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of numbers, and of numbers by name."""

    def median(values: list[Any]) -> Any:
        return _medians(values) if isinstance(values[0], dict) else statistics.median(values)

    return {key: median([run[key] for run in runs]) for key in runs[0]}


def _report(what: str, found: Mapping[str, Any]) -> None:
    """A line for each query, and one for all of them."""
    print(f"\n{what}")
    ours, dataflow = found["ours"], found["dataflow"]
    both = {name: (ours[name], dataflow[name]) for name in QUERIES if name in dataflow}
    if TOGETHER in dataflow:
        both[TOGETHER] = (sum(ours.values()), dataflow[TOGETHER])
    for name, (our, its) in both.items():
        reading = found["reading"][name]
        print(f"{name:<8}  ours {our:8.3f} s  dataflow {its:8.5f} s, reading {reading:.5f} s  {our / its:7.1f} x")
    print(f"our sources' intake, which is in none of them: {found['intake']:.3f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
