"""TPC-DI's warehouse day after day, as projects of several materializations over the same files.

``python -m benchmarks.tpcdi.run --scale 1 --days 10 --verify-every 5 --ways differential table``

49 models in four layers: ``bronze`` reads the files, ``silver`` keeps versions of customers, accounts, companies and
securities, ``gold`` joins facts with the version of their time, ``analytic`` answers questions. Each day each project
has one ``dbt run``, a process of its own; seconds are of all of it. ``differential`` is compared with Spark's batch
answer (``dbt-dd verify``), and each project with ``table``, if that one is run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.results import add_options, table, write
from benchmarks.tpcdi.contents import wrong_rows
from benchmarks.tpcdi.generator import Generator
from benchmarks.tpcdi.lifetime import Shares
from benchmarks.tpcdi.reads import all_of, by_model
from benchmarks.tpcdi.report import summary
from benchmarks.tpcdi.sizes import date_of
from benchmarks.tpcdi.ways import EVENTS, MODELS, WAYS, possible, stored, write_project

_BIN = Path(sys.executable).parent


def main() -> int:
    """0 when every differential model was exact whenever it was compared."""
    options = _arguments()
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    shares = Shares(options.inserts, options.updates, options.deletes)
    feed = Generator(folder / "data", options.scale, shares)
    feed.historical()
    for way in options.ways:
        write_project(way, folder / way, folder / "data", options.strategy)
    days = [_day(folder, options.ways, 0)]
    wrong: dict[str, Any] = {}
    found = {
        "scale": options.scale,
        "ways": options.ways,
        "shares": vars(shares),
        "strategy": options.strategy,
        "again_every": options.again_every,
        "days": days,
        "wrong": wrong,
    }
    for day in range(1, options.days + 1):
        changed = feed.batch(day)
        if options.again_every and day % options.again_every == 0:
            feed.redelivered("trade", day // 2, day)
        is_compared = day % options.verify_every == 0 or day == options.days
        has_table = day % options.table_every == 0 or is_compared
        ways = [way for way in options.ways if way != "table" or has_table]
        days.append({"changed": changed, **_day(folder, ways, day)})
        if is_compared:
            wrong[str(date_of(day))] = _compared(folder, options.ways)
        write(options.json, found)
    print(table(["", *options.ways], summary(days, options.ways)))
    print("* of differential: by its models, intakes left out; of others: by Spark; DuckDB does not tell")
    return 1 if any(found.get("differential") for found in wrong.values()) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.02, help="scale factor (default: 0.02)")
    parser.add_argument("--days", type=int, default=2, help="batches after the historical load (default: 2)")
    parser.add_argument("--inserts", type=float, default=0.01, help="share of the first rows, a day (default: 0.01)")
    parser.add_argument("--updates", type=float, default=0.005, help="of the rows, a day (default: 0.005)")
    parser.add_argument("--deletes", type=float, default=0.005, help="of the rows, a day (default: 0.005)")
    parser.add_argument(
        "--again-every",
        type=int,
        default=2,
        help="days after which a former day's trades come again; 0: never (default: 2)",
    )
    parser.add_argument("--verify-every", type=int, default=1, help="days between comparisons (default: 1)")
    parser.add_argument(
        "--ways",
        nargs="+",
        choices=WAYS,
        default=["differential"],
        help="projects (default: differential); incremental needs Delta's connector, which there is for pyspark 4.2",
    )
    parser.add_argument(
        "--strategy", choices=("auto", "delta"), default="auto", help="of differential models (default: auto)"
    )
    parser.add_argument(
        "--table-every",
        type=int,
        default=1,
        help="days between runs of `table`, which needs none of the days between (default: 1)",
    )
    add_options(parser, "tpcdi")
    options = parser.parse_args()
    missing = [way for way in options.ways if not possible(way)]
    if missing:
        parser.error(f"{', '.join(missing)}: Delta's connector is not made for the pyspark that is installed")
    return options


def _day(folder: Path, ways: list[str], day: int) -> dict[str, Any]:
    """What each project's run took; the one that is first changes from day to day."""
    turn = day % len(ways)
    done = {way: _run(way, folder / way, str(date_of(day))) for way in (*ways[turn:], *ways[:turn])}
    told = "; ".join(f"{way} {one['seconds']:.1f} s ({_told(one['models'])})" for way, one in done.items())
    print(f"{date_of(day)}: {told}", flush=True)
    return done


def _run(way: str, folder: Path, date: str) -> dict[str, Any]:
    """Seconds of the run, and how many models it has run in which way. Raises RuntimeError where it fails.

    The day's date is the run's time, so that history is forgotten as it would be if days took as long as they do.
    """
    started = time.monotonic()
    if way == "duckdb":
        done = _program(Path.cwd(), "python", "-m", "benchmarks.tpcdi.in_duckdb", str(folder))
    else:
        given = ["run", "--project-dir", str(folder), "--profiles-dir", str(folder)]
        done = _program(folder, "dbt", *given, time=date)
    seconds = time.monotonic() - started
    if done.returncode:
        raise RuntimeError(f"{done.stdout}\n{done.stderr}")
    if way == "duckdb":
        return {"seconds": seconds, "models": Counter(OK=len(MODELS))}
    results = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    found = [one for one in results if one["unique_id"].startswith("model.")]
    return {
        "seconds": seconds,
        "read": all_of(results, folder / EVENTS),
        "by_model": by_model(found),
        "models": Counter(_way(one["message"]) for one in found),
        "slowest": {
            one["unique_id"].rpartition(".")[2]: round(one["execution_time"], 2)
            for one in sorted(found, key=lambda one: -one["execution_time"])[:10]
        },
        "not_by_deltas": {
            one["unique_id"].rpartition(".")[2]: one["message"]
            for one in found
            if _way(one["message"]) not in ("delta", "unchanged")
        },
    }


def _way(message: str) -> str:
    """A model's strategy, from what dbt says of it: ``+3 -2 at 2026-01-01 00:00:00.000 in 0.1s; rebuild: ...``; of
    other materializations it says ``OK``."""
    if message.startswith("unchanged") or message == "OK":
        return message.split(" ")[0]
    _, _, strategy = message.partition("; ")
    return strategy.partition(":")[0] or "delta"


def _told(models: Counter[str]) -> str:
    return ", ".join(f"{count} {way}" for way, count in models.most_common())


def _compared(folder: Path, ways: list[str]) -> dict[str, Any]:
    """By project, what is wrong of it."""
    found: dict[str, Any] = {}
    if "differential" in ways:
        done = _program(
            folder / "differential",
            *("dbt-dd", "--project-dir", str(folder / "differential"), "--profiles-dir", str(folder / "differential")),
            "verify",
        )
        found["differential"] = {} if done.returncode == 0 else {"verify": f"{done.stdout}\n{done.stderr}"}
        print("all models are exact" if done.returncode == 0 else done.stdout + done.stderr, flush=True)
    if "table" in ways:
        for way in ways:
            rows = {} if way == "table" else wrong_rows(way, folder / way, folder / "table")
            found[way] = {**found.get(way, {}), **rows}
            if rows:
                told = ", ".join(f"{model} {count:,}" for model, count in sorted(rows.items(), key=lambda one: -one[1]))
                print(f"{way}: wrong rows in {len(rows)} of {len(stored(way))} models: {told}", flush=True)
    return found


def _program(folder: Path, program: str, *arguments: str, time: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "DBT_DD_TIME": time}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each run would compile all of its modules
    return subprocess.run(
        [str(_BIN / program), *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


if __name__ == "__main__":
    sys.exit(main())
