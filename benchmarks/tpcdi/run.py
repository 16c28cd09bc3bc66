"""TPC-DI's warehouse day after day: ``dbt run`` over each batch, and every model against Spark's batch answer.

``python -m benchmarks.tpcdi.run --scale 1 --days 10 --verify-every 5``

49 models in four layers: ``bronze`` reads the files, ``silver`` keeps versions of customers, accounts, companies and
securities, ``gold`` joins facts with the version of their time, ``analytic`` answers questions. Seconds are of whole
invocations of dbt, each a process of its own.
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

from benchmarks.results import add_options, write
from benchmarks.tpcdi.generator import Generator
from benchmarks.tpcdi.lifetime import Shares
from benchmarks.tpcdi.sizes import date_of

PROJECT = Path(__file__).parent / "project"
_BIN = Path(sys.executable).parent


def main() -> int:
    """0 when every model was exact whenever it was compared."""
    options = _arguments()
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("target", "logs", ".dbt*", "__pycache__"))
    shares = Shares(options.inserts, options.updates, options.deletes)
    feed = Generator(folder / "data", options.scale, shares)
    feed.historical()
    results: dict[str, Any] = {"scale": options.scale, "shares": vars(shares), "days": [_run(folder)]}
    print(f"historical load: {_told(results['days'][0])}", flush=True)
    wrong: list[str] = []
    for day in range(1, options.days + 1):
        changed = feed.batch(day)
        results["days"].append({**_run(folder), "changed": changed})
        print(f"{date_of(day)}: {changed}; {_told(results['days'][-1])}", flush=True)
        if day % options.verify_every == 0 or day == options.days:
            wrong += _wrong(folder)
            print("WRONG" if wrong else "all models are exact", flush=True)
    write(options.json, results)
    print("\n".join(wrong))
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.02, help="scale factor (default: 0.02)")
    parser.add_argument("--days", type=int, default=2, help="batches after the historical load (default: 2)")
    parser.add_argument("--inserts", type=float, default=0.01, help="share of the first rows, a day (default: 0.01)")
    parser.add_argument("--updates", type=float, default=0.005, help="of the rows, a day (default: 0.005)")
    parser.add_argument("--deletes", type=float, default=0.005, help="of the rows, a day (default: 0.005)")
    parser.add_argument("--verify-every", type=int, default=1, help="days between comparisons (default: 1)")
    add_options(parser, "tpcdi")
    return parser.parse_args()


def _run(folder: Path) -> dict[str, Any]:
    """Seconds of ``dbt run``, and how many models it has run in which way. Raises RuntimeError where it fails."""
    started = time.monotonic()
    done = _dbt(folder, "dbt", "run", "--project-dir", str(folder), "--profiles-dir", str(folder))
    seconds = time.monotonic() - started
    if done.returncode:
        raise RuntimeError(f"{done.stdout}\n{done.stderr}")
    found = json.loads((folder / "target" / "run_results.json").read_text())["results"]
    return {"seconds": seconds, "models": Counter(_way(one["message"]) for one in found)}


def _way(message: str) -> str:
    """A model's strategy, from what dbt says of it: ``+3 -2 at 2026-01-01 00:00:00.000 in 0.1s; rebuild: ...``."""
    if message.startswith("unchanged"):
        return "unchanged"
    _, _, strategy = message.partition("; ")
    return strategy.partition(":")[0] or "delta"


def _told(run: dict[str, Any]) -> str:
    return f"{run['seconds']:.1f} s, " + ", ".join(f"{count} {way}" for way, count in run["models"].most_common())


def _wrong(folder: Path) -> list[str]:
    """What ``verify`` says, where a model is not exact."""
    done = _dbt(folder, "dbt-dd", "--project-dir", str(folder), "--profiles-dir", str(folder), "verify")
    return [] if done.returncode == 0 else [f"{done.stdout}\n{done.stderr}"]


def _dbt(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each run would compile all of its modules
    return subprocess.run(
        [str(_BIN / program), *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )


if __name__ == "__main__":
    sys.exit(main())
