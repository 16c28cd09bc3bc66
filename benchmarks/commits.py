"""What syncing to the disk costs a commit: small ones by turns with it and without, as `DBT_DD_DURABLE=0` has it.

``python -m benchmarks.commits --commits 100``; no Spark. On a busy machine the least times say more than the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from unittest import mock

from benchmarks.following import View
from benchmarks.results import add_options, write
from dbt_incremental_dd.storage import durable


def main() -> int:
    """Always 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=100, help="of each kind (default: 100)")
    add_options(parser, "commits")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    views = {True: View(options.folder / "synced", 1_000), False: View(options.folder / "not", 1_000)}
    seconds: dict[bool, list[float]] = {True: [], False: []}
    with mock.patch.object(os, "fsync", wraps=os.fsync) as synced:
        for _ in range(options.commits):
            for is_synced, view in views.items():
                with mock.patch.object(durable, "enabled", is_synced):
                    started = time.perf_counter()
                    view.change()
                    seconds[is_synced].append(time.perf_counter() - started)
    found = {
        "fsyncs a commit": round(synced.call_count / options.commits, 1),
        **{f"{name} ms, synced": round(1000 * of(seconds[True]), 1) for name, of in OF.items()},
        **{f"{name} ms, not synced": round(1000 * of(seconds[False]), 1) for name, of in OF.items()},
    }
    print(json.dumps(found), flush=True)
    write(options.json, found)
    return 0


OF = {"least": min, "median": statistics.median}


if __name__ == "__main__":
    sys.exit(main())
