"""A wide project as a whole ``dbt run``: 50 models in chains over 10 sources, against other materializations.

``python -m benchmarks.wide.run --rows 200000``

The same SQL as ``differential``, ``table`` and ``view`` models, and as ``incremental`` ones written by hand over Delta
tables, run in turn in one process and session. Times are of whole invocations of dbt, parsing included. Rows are
compared at the end: every project's models must have those of the ``table`` project.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import meter
from benchmarks.compared import SPARK, fingerprint, has_delta
from benchmarks.results import add_options, write
from benchmarks.wide.feed import SOURCES, Feed
from benchmarks.wide.project import LAYERS, write_project

if TYPE_CHECKING:
    pass

PROJECTS = ("differential", "table", "incremental", "view")


def main() -> int:
    """0 when all projects have the same rows at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="of each source but a small one (default: 20,000)")
    parser.add_argument("--repeats", type=int, default=3, help="of each kind of change (default: 3)")
    parser.add_argument("--share", type=float, default=0.001, help="of each source changed (default: 0.001)")
    parser.add_argument("--projects", nargs="+", default=list(PROJECTS), choices=PROJECTS)
    add_options(parser, "wide")
    options = parser.parse_args()
    projects = _possible(options.projects)
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    feed = Feed(folder / "data", options.rows)
    for project in projects:
        write_project(folder / project, f"wide_{project}", project, folder / "data", meter.settings(folder / "events"))
    bench = _Bench(folder, projects)
    results = {"first": bench.measured(1, lambda: None)}
    results["nothing"] = bench.measured(options.repeats, lambda: None)
    results["small"] = bench.measured(options.repeats, lambda: feed.change(SOURCES[0], 0.01))
    results["all"] = bench.measured(options.repeats, lambda: [feed.change(name, options.share) for name in SOURCES])
    for kind, found in results.items():
        told = ", ".join(f"{project} {seconds:.1f} s" for project, seconds in found.items())
        print(f"{kind:<8} {told}")
    write(options.json, {"rows": options.rows, "share": options.share, "seconds": results, "jobs": bench.jobs})
    wrong = bench.wrong()
    print(f"WRONG: {', '.join(wrong)}" if wrong else "all projects have the same rows")
    return 1 if wrong else 0


def _possible(projects: list[str]) -> list[str]:
    """The projects without the incremental one where Delta's connector is not for this Spark."""
    if "incremental" not in projects or has_delta():
        return projects
    print(f"incremental is left out: it needs Delta's Spark connector, and so pyspark {SPARK}.*")
    return [project for project in projects if project != "incremental"]


class _Bench:
    """All projects over one session, which the first ``dbt run`` opens."""

    def __init__(self, folder: Path, projects: list[str]) -> None:
        self._folder = folder
        self._projects = projects
        self._meter = meter.Meter(folder / "events")
        self.jobs: dict[str, list[int]] = {project: [] for project in projects}
        """Spark jobs of each run, by project."""

    def measured(self, repeats: int, change: Callable[[], object]) -> dict[str, float]:
        """Medians of seconds, by project; each project runs after each change."""
        seconds: dict[str, list[float]] = {project: [] for project in self._projects}
        for _ in range(repeats):
            change()
            for project in self._projects:
                seconds[project].append(self._run(project))
                self.jobs[project].append(self._meter.take().jobs)
                print(f"{project} {seconds[project][-1]:.1f} s, {self.jobs[project][-1]} Spark jobs", flush=True)
        return {project: statistics.median(found) for project, found in seconds.items()}

    def _run(self, project: str) -> float:
        from dbt.cli.main import dbtRunner

        folder = str(self._folder / project)
        started = time.monotonic()
        made = dbtRunner().invoke(["run", "--project-dir", folder, "--profiles-dir", folder, "--quiet"])
        if not made.success:
            raise SystemExit(f"dbt run of {project} failed: {made.exception or [r.message for r in made.result]}")
        return time.monotonic() - started

    def wrong(self) -> list[str]:
        """Models that differ from the ``table`` project's; views are the same queries once more."""
        from pyspark.sql import SparkSession

        spark = SparkSession.active()
        found = []
        for name in (f"{layer}_{i}" for layer in LAYERS for i in range(len(SOURCES))):
            wanted = fingerprint(spark.table(f"wide_table.{name}"))
            for project in set(self._projects) - {"table", "view"}:
                if fingerprint(spark.table(f"wide_{project}.{name}")) != wanted:
                    found.append(f"{project}.{name}")
        return found


if __name__ == "__main__":
    sys.exit(main())
