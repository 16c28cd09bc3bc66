"""`dbt run` from a shell, beside dbt-duckdb's run of the same models over the same files, in turns.

Each run is a process of its own. Ours has no Java where it must need none: it would fail if it opened a session. What
is timed is everything, from the process's start to its end.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.cold.pairs import PROJECTS, pair

DBT = str(Path(sys.executable).parent / "dbt")


def main() -> int:
    """0 if every model was exact in the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projects", nargs="*", default=list(PROJECTS), choices=PROJECTS)
    parser.add_argument("--rounds", type=int, default=5, help="of each kind of run (default: 5)")
    parser.add_argument("--duckdb", required=True, help="a dbt that has dbt-duckdb, such as .venv-duckdb/bin/dbt")
    options = parser.parse_args()
    heads = ("first run", "duckdb's", "nothing", "change", "duckdb")
    print(f"{'project':<12} {' '.join(f'{head:>10}' for head in heads)} {'ratios':>16}  exact")
    exact = [_project(name, options.rounds, options.duckdb) for name in options.projects]
    return 0 if all(exact) else 1


def _project(name: str, rounds: int, duckdb: str) -> bool:
    with tempfile.TemporaryDirectory() as made:
        both = pair(name, Path(made))
        ours, theirs = both.ours, both.theirs
        if (ours / "seeds").exists():
            run(DBT, ours, "seed")
            run(duckdb, theirs, "seed")
        first, first_built = run(DBT, ours, "run"), run(duckdb, theirs, "run")
        both.change(1)
        run(DBT, ours, "run")  # what is asked of Spark once is asked now
        nothing, change, built = [], [], []
        for round in range(2, rounds + 2):
            nothing.append(run(DBT, ours, "run", java=False))
            built.append(run(duckdb, theirs, "run"))
            both.change(round)
            change.append(run(DBT, ours, "run", java=False))
            built.append(run(duckdb, theirs, "run"))
        exact = is_exact(ours)
        a, b, c = (statistics.median(times) for times in (nothing, change, built))
        ratios = f"{first / first_built:.1f} {a / c:.2f} {b / c:.2f}"
        times = f"{first:>10.1f} {first_built:>10.1f} {a:>10.2f} {b:>10.2f} {c:>10.2f}"
        print(f"{name:<12} {times} {ratios:>16}  {exact}", flush=True)
        return exact


def run(dbt: str, folder: Path, command: str, *, java: bool = True) -> float:
    """Seconds of a run of dbt. Raises RuntimeError where it fails."""
    environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # either would compile all of its modules in each run
    if not java:
        environment["PATH"] = "/nowhere"
    started = time.monotonic()
    call = [dbt, command, "--project-dir", str(folder), "--profiles-dir", str(folder)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, cwd=folder)
    seconds = time.monotonic() - started
    if done.returncode:
        raise RuntimeError(f"{' '.join(call)}\n{done.stdout}\n{done.stderr}")
    return seconds


def is_exact(folder: Path) -> bool:
    """Whether every model has the rows of Spark's batch answer."""
    call = [f"{DBT}-dd", "--project-dir", str(folder), "verify"]
    return subprocess.run(call, capture_output=True).returncode == 0


if __name__ == "__main__":
    os.environ.pop("JAVA_HOME", None)
    sys.exit(main())
