"""A day of small runs: how files, bytes and seconds per run develop with compaction and vacuum in between.

``python -m benchmarks.soak --runs 500``

Every source of the fault tests' feed changes a little before each run of all its models; every ``--every`` runs the
collections are compacted with a minute of history, and vacuumed. At the end every model is compared with Spark's batch
answer.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.results import add_options, write
from tests.faults.worker import Worker

_RETAINED = 60_000


def main() -> int:
    """0 when the last run is as exact as the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60, help="(default: 60)")
    parser.add_argument("--every", type=int, default=20, help="runs between compactions (default: 20)")
    add_options(parser, "soak")
    options = parser.parse_args()
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    worker = Worker(folder, retain_history=_RETAINED)
    worker.feed()
    worker.run()
    found = []
    for first in range(0, options.runs, options.every):
        seconds = [_timed(worker) for _ in range(first, min(first + options.every, options.runs))]
        before = _size(folder / "state" / "collections")
        started = time.monotonic()
        worker.compact()
        worker.vacuum()
        compacting = time.monotonic() - started
        after = _size(folder / "state" / "collections")
        row = {"runs": first + len(seconds), "seconds": statistics.median(seconds), "compaction_seconds": compacting}
        row |= {"files_before": before[0], "bytes_before": before[1], "files": after[0], "bytes": after[1]}
        found.append(row)
        print(", ".join(f"{name} {value:,.1f}" for name, value in row.items()), flush=True)
    worker.check()
    print("every collection is exact")
    write(options.json, {"every": options.every, "rows": found})
    return 0


def _timed(worker: Worker) -> float:
    worker.feed()
    started = time.monotonic()
    worker.run()
    return time.monotonic() - started


def _size(folder: Path) -> tuple[int, int]:
    """Files, and their bytes; a file that has several names counts once."""
    found: dict[Any, int] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            info = path.stat()
            found[info.st_ino] = info.st_size
    return len(found), sum(found.values())


if __name__ == "__main__":
    sys.exit(main())
