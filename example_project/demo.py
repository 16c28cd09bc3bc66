"""Runs the six example projects: first state, then rounds of changes, each checked against Spark's batch answer."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

PROJECTS = ("flights", "wikirecent", "clickstream", "payments", "fraud", "hierarchy")


@dataclass
class Tally:
    """What a project's rounds came to."""

    delta: list[float] = field(default_factory=list)
    rebuild: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    rounds: int = 0


def main() -> int:
    """0 when every model of every project was exact after every round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--projects", nargs="*", default=list(PROJECTS), choices=PROJECTS)
    parser.add_argument("--days", type=int, default=150, help="days of flights in the first state")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    started = time.monotonic()
    tallies = {name: _run_project(name, options.rounds, options.days) for name in options.projects}
    print(f"\n{'project':<12} {'rounds':>6} {'delta s':>9} {'rebuild s':>10}  exact")
    for name, tally in tallies.items():
        delta, rebuild = (statistics.median(found or [0.0]) for found in (tally.delta, tally.rebuild))
        verdict = "all exact" if not tally.wrong else f"WRONG: {', '.join(tally.wrong)}"
        print(f"{name:<12} {tally.rounds:>6} {delta:>9.2f} {rebuild:>10.2f}  {verdict}")
    print(f"in {time.monotonic() - started:.0f} s")
    return 1 if any(tally.wrong for tally in tallies.values()) else 0


def _run_project(name: str, rounds: int, days: int) -> Tally:
    folder = HERE / name
    for generated in ("data", ".dbt_incremental_dd", "target", "logs"):
        shutil.rmtree(folder / generated, ignore_errors=True)
    feed = _feed(name, folder / "data", days)
    tally = Tally()
    print(f"\n== {name}: first state {feed.start()}")
    _dbt(folder, "seed")
    _show(folder, _dbt(folder, "run"), tally, is_timed=not rounds)
    for round in range(1, rounds + 1):
        print(f"\n-- {name}, round {round}: {feed.advance(round)}")
        _show(folder, _dbt(folder, "run"), tally, is_timed=round == rounds)
        tally.rounds += 1
    return tally


def _feed(name: str, folder: Path, days: int) -> Any:
    from importlib import import_module

    feed = import_module(f"example_project.{name}.feed").Feed
    return feed(folder, days) if name == "flights" else feed(folder)


_SIDE_BY_SIDE = 3
"""Verifications of a few rows, which do not keep the cores busy."""
_TOLD = 8.0
"""Seconds without a line."""


@contextlib.contextmanager
def _telling(what: str) -> Iterator[Any]:
    """Says every few seconds what takes so long; gives what listens to dbt's events."""
    out, began, done, at = sys.stdout, time.monotonic(), threading.Event(), [what]

    def listen(event: Any) -> None:
        if event.info.name in ("LogStartLine", "LogModelResult"):
            at[0] = f"{what}: {event.info.msg}"

    def tell() -> None:
        while not done.wait(_TOLD):
            print(f"   {time.monotonic() - began:.0f} s, {at[0]}", file=out)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield listen
    finally:
        done.set()
        teller.join()


def _dbt(folder: Path, command: str) -> Any:
    """One dbt command in this process, quietly; its log is in the project's logs folder."""
    from dbt.cli.main import dbtRunner

    arguments = [command, "--project-dir", str(folder), "--profiles-dir", str(folder), "--quiet"]
    arguments += ["--log-path", str(folder / "logs"), "--no-send-anonymous-usage-stats"]
    output = io.StringIO()
    with _telling(f"dbt {command}") as listen, contextlib.redirect_stdout(output):
        result = dbtRunner(callbacks=[listen]).invoke(arguments)
    if not result.success:
        print(output.getvalue())
        raise SystemExit(f"dbt {command} failed in {folder.name}: {result.exception or 'see above'}")
    return result.result


def _show(folder: Path, results: Any, tally: Tally, *, is_timed: bool) -> None:
    """A line for each model: what came in, what changed, how long it took, and whether it is exact. ``is_timed``: also
    how long a rebuild takes, for which models are verified one after the other."""
    from dbt_incremental_dd.runtime.session import open_session
    from dbt_incremental_dd.runtime.verify import Verification, verify_model
    from dbt_incremental_dd.trace.layout import Storage

    root = str(folder / ".dbt_incremental_dd")
    spark, storage = open_session(root, {}), Storage(root)
    ran = [result for result in results if result.adapter_response.get("strategy")]

    def verified(result: Any) -> Verification:
        return verify_model(spark, storage, f"{result.node.schema}.{result.node.alias}")

    print(f"{'model':<28} {'how':<9} {'input':>8} {'+rows':>8} {'-rows':>8} {'seconds':>8} {'rebuild':>8}  exact")
    with ThreadPoolExecutor(1 if is_timed else _SIDE_BY_SIDE) as pool:
        for result, found in zip(ran, pool.map(verified, ran), strict=True):
            response = result.adapter_response
            verdict = "exact" if found.exact else f"WRONG -{found.missing} +{found.unexpected}"
            counts = f"{response['input_rows']:>8} {response['rows_added']:>8} {response['rows_removed']:>8}"
            rebuild = f"{found.rebuild_seconds:>8.2f}" if is_timed else f"{'':>8}"
            line = f"{result.node.alias:<28} {response['strategy']:<9} {counts} {response['seconds']:>8.2f} {rebuild}"
            print(f"{line}  {verdict}")
            if not found.exact:
                tally.wrong.append(result.node.alias)
            if response["strategy"] == "delta":
                tally.delta.append(response["seconds"])
                tally.rebuild += [found.rebuild_seconds] if is_timed else []


if __name__ == "__main__":
    os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    sys.exit(main())
