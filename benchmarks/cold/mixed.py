"""`dbt run` from a shell where some models are tables, which need a Spark session, beside dbt-spark's own tables.

``python -m benchmarks.cold.mixed``: 50 differential models and three tables over them; and all 53 as tables of
dbt-spark's `method: session`. Each run is a process of its own; they take turns. ``cold`` is ours without the archive
of Spark's classes, as on a machine's first run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

from benchmarks.cold.run import DBT, is_exact, run
from benchmarks.compared import write_yaml
from benchmarks.wide.feed import SOURCES, Feed
from benchmarks.wide.project import write_project

_REPORTS = 3
_REPORT = "{{{{ config(materialized='table') }}}} select * from {{{{ ref('summary_{}') }}}} where total > 100"
_WAYS = ("cold", "ours", "dbt-spark")


def main() -> int:
    """0 if every model was exact in the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000, help="of each source (default: 10,000)")
    parser.add_argument("--rounds", type=int, default=3, help="of each kind of run (default: 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        feed = Feed(folder / "data", options.rows)
        ours, theirs = folder / "ours", folder / "theirs"
        _write(ours, "differential", folder / "data")
        _write(theirs, "table", folder / "data")
        _of_dbt_spark(theirs)
        runs: dict[str, Callable[[], float]] = {
            "cold": lambda: _run(ours, archive=False),
            "ours": lambda: _run(ours, archive=True),
            "dbt-spark": lambda: run(DBT, theirs, "run"),
        }
        first = {way: runs[way]() for way in ("ours", "dbt-spark")}
        print(f"{'':<10} {' '.join(f'{way:>10}' for way in _WAYS)}")
        print(f"{'first run':<10} {'':>10} {first['ours']:>10.1f} {first['dbt-spark']:>10.1f}", flush=True)
        for what, change in (("nothing", lambda: None), ("one source", lambda: feed.change(SOURCES[0], 0.01))):
            found: dict[str, list[float]] = {way: [] for way in _WAYS}
            for _ in range(options.rounds):
                for way in _WAYS:
                    change()
                    found[way].append(runs[way]())
            times = " ".join(f"{statistics.median(found[way]):>10.1f}" for way in _WAYS)
            print(f"{what:<10} {times}", flush=True)
        exact = is_exact(ours)
        print("all models are exact" if exact else "WRONG")
        return 0 if exact else 1


def _write(folder: Path, materialized: str, data: Path) -> None:
    write_project(folder, folder.name, materialized, data, {})
    for number in range(_REPORTS):
        (folder / "models" / f"report_{number}.sql").write_text(_REPORT.format(number))
    path = folder / "profiles.yml"
    profile = yaml.safe_load(path.read_text())
    (target,) = profile[folder.name]["outputs"].values()
    del target["state_root"], target["server_side_parameters"]
    write_yaml(path, profile)


def _of_dbt_spark(folder: Path) -> None:
    target = {"type": "spark", "method": "session", "host": "none", "schema": folder.name, "threads": 2}
    write_yaml(folder / "profiles.yml", {folder.name: {"target": "dev", "outputs": {"dev": target}}})


def _run(folder: Path, *, archive: bool) -> float:
    os.environ["DBT_DD_CLASS_ARCHIVE"] = "1" if archive else "0"
    return run(DBT, folder, "run")


if __name__ == "__main__":
    raise SystemExit(main())
