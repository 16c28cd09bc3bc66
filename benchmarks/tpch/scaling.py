"""TPC-H under the same absolute change at several scale factors: does the cost follow the change, or the data?

``python -m benchmarks.tpch.scaling --scales 0.1 1 10 --orders 1000``

All scales are measured in one session, in turn. Told for each is how many times its seconds and bytes read are those
of the scale before: a geometric mean over the queries that read anything that changed. What is left of a scale can be
gone on with: ``python -m benchmarks.tpch.refresh --resume --scale 10 --schema tpch_10 --folder <folder>/tpch_10``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import meter, rounds
from benchmarks.results import add_options, geometric_mean, write
from benchmarks.tpch.bench import Bench
from benchmarks.tpch.refresh_feed import RefreshFeed


def main() -> int:
    """Prints a table, and writes the results as JSON where a file is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=float, nargs="+", default=[0.01, 0.1], help="factors (default: 0.01 0.1)")
    parser.add_argument("--orders", type=int, default=1_000, help="orders changed by a refresh (default: 1,000)")
    parser.add_argument("--where", nargs="+", default=["recent", "random"], choices=["recent", "random"])
    parser.add_argument("--repeats", type=int, default=3, help="refreshes of each kind (default: 3)")
    parser.add_argument("--resume", action="store_true", help="go on with the folder's states, where there are any")
    parser.add_argument("--only", nargs="*", help="queries, such as q03")
    add_options(parser, "tpch_scaling")
    options = parser.parse_args()
    folder = options.folder.resolve()
    events = folder / "events" / str(time.time_ns())
    spark = rounds.session(folder, "scaling", meter.settings(events))
    metered = meter.Meter(events)
    results = []
    for scale in options.scales:
        schema = f"tpch_{scale:g}".replace(".", "_")
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
        resume = options.resume and (folder / schema / "feed.json").exists()
        if not resume:
            shutil.rmtree(folder / schema / "state", ignore_errors=True)
        feed = RefreshFeed(folder / schema, scale, resume)
        bench = Bench(spark, folder / schema, feed, metered, options.only, schema)
        first = bench.run()
        found = {where: bench.refreshes(where, options.orders, options.repeats) for where in options.where}
        results.append({"scale": scale, "size": _size(feed.generated), "first_load": first, **found})
    for where in options.where:
        _report(where, results)
    write(options.json, results)
    return 0


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def _report(where: str, results: list[dict[str, Any]]) -> None:
    print(f"\n{where}: {results[0][where]['changed']['orders']} orders")
    for before, after in pairwise(results):
        pairs = [
            (one, after[where]["models"][name]) for name, one in before[where]["models"].items() if one["read_rows"]
        ]
        seconds = geometric_mean([two["seconds"] / one["seconds"] for one, two in pairs])
        size = geometric_mean([two["read_bytes"] / one["read_bytes"] for one, two in pairs])
        print(
            f"scale {before['scale']:g} to {after['scale']:g}, {after['size'] / before['size']:.1f} times the data: "
            f"{seconds:.2f} times the seconds, {size:.2f} times the bytes read"
        )


if __name__ == "__main__":
    sys.exit(main())
