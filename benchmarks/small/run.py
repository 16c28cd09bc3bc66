"""A project of a few MB, by deltas and as tables: seconds of each model in each round.

``python -m benchmarks.small.run --rows 20000 --rounds 8``

The same SQL as ``differential`` and as ``table`` models, run in turn in one warm process and session. A model's
seconds are wall time from its start to its end; with ``--cpu``, processor time of the driver and Spark, which says
more on a busy machine. Rows are compared at the end: both projects' models must have the same.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.compared import fingerprint
from benchmarks.results import add_options, write
from benchmarks.small.feed import SOURCES, Feed
from benchmarks.small.project import MODELS, write_project

if TYPE_CHECKING:
    pass

PROJECTS = ("differential", "table")
_TICK = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """0 when both projects have the same rows at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="of each source at first (default: 20,000)")
    parser.add_argument("--rounds", type=int, default=8, help="with changes, after the first run (default: 8)")
    parser.add_argument("--records", type=int, default=100, help="changed in each source in a round (default: 100)")
    parser.add_argument("--one", action="store_true", help="change one source in a round, not all")
    parser.add_argument("--cpu", action="store_true", help="measure processor time")
    add_options(parser, "small")
    options = parser.parse_args()
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    feed = Feed(folder / "data", options.rows)
    for project in PROJECTS:
        write_project(folder / project, f"small_{project}", project, folder / "data", {})
    clock = _cpu_seconds if options.cpu else time.monotonic
    rounds = []
    for number in range(options.rounds + 1):
        for name in SOURCES[number % len(SOURCES) :][:1] if options.one else SOURCES:
            if number:
                feed.change(name, options.records)
        rounds.append({project: _Invocation(folder / project, clock) for project in PROJECTS})
        _print_round(number, rounds[-1])
    _print_totals(rounds)
    told = [{project: made.seconds for project, made in done.items()} for done in rounds]
    write(options.json, {"rows": options.rows, "records": options.records, "cpu": options.cpu, "rounds": told})
    wrong = _wrong()
    print(f"WRONG: {', '.join(wrong)}" if wrong else "both projects have the same rows")
    return 1 if wrong else 0


class _Invocation:
    """One ``dbt run``, one model after the other."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        from dbt.cli.main import dbtRunner

        self._clock = clock
        self._started: dict[str, float] = {}
        self.seconds: dict[str, float] = {}
        """By model; ``total`` is the whole invocation's, parsing included."""
        self.strategies: dict[str, str] = {}
        arguments = ["run", "--threads", "1", "--project-dir", str(folder), "--profiles-dir", str(folder), "--quiet"]
        started = clock()
        made = dbtRunner(callbacks=[self._note]).invoke(arguments)
        total = clock() - started
        if not made.success:
            raise SystemExit(f"dbt run failed: {made.exception or [r.message for r in made.result]}")
        self.seconds["total"] = total
        for result in made.result:
            self.strategies[result.node.name] = result.adapter_response.get("strategy", "")

    def _note(self, event: Any) -> None:
        if event.info.name == "NodeStart":
            self._started[event.data.node_info.node_name] = self._clock()
        elif event.info.name == "NodeFinished":
            name = event.data.node_info.node_name
            self.seconds[name] = self._clock() - self._started[name]


def _print_round(number: int, done: dict[str, _Invocation]) -> None:
    ours, table = done["differential"], done["table"]
    print(f"\nround {number:<20} differential        table")
    for name in (*MODELS, "total"):
        print(f"{name:<26} {ours.seconds[name]:>12.2f} {table.seconds[name]:>12.2f}  {ours.strategies.get(name, '')}")
    sys.stdout.flush()


def _print_totals(rounds: list[dict[str, _Invocation]]) -> None:
    print("\nround    differential  table  builds")
    for number, done in enumerate(rounds):
        ours, table = done["differential"], done["table"]
        builds = sum(strategy not in ("delta", "skip") for strategy in ours.strategies.values())
        print(f"{number:<8} {ours.seconds['total']:>12.1f} {table.seconds['total']:>6.1f} {builds:>7}")


def _cpu_seconds() -> float:
    """Of this process and of those that it has started."""
    parents, spent = {}, {}
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdecimal() else []
        except OSError:
            continue
        if fields:
            parents[int(entry.name)] = int(fields[1])
            spent[int(entry.name)] = (int(fields[11]) + int(fields[12])) / _TICK
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(spent[pid] for pid in mine)


def _wrong() -> list[str]:
    """Models that differ from one project to the other."""
    from pyspark.sql import SparkSession

    spark = SparkSession.active()
    tables = [{p: spark.table(f"small_{p}.{name}") for p in PROJECTS} for name in MODELS]
    return [
        name
        for name, both in zip(MODELS, tables, strict=True)
        if fingerprint(both["differential"]) != fingerprint(both["table"])
    ]


if __name__ == "__main__":
    sys.exit(main())
