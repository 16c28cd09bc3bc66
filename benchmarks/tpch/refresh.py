"""TPC-H under refreshes of its orders and lines: whole runs by deltas, intake included, against full rebuilds.

``python -m benchmarks.tpch.refresh --scale 1 --shares 0.0001 0.001 0.01``

DuckDB builds the tables anew from the sources' Parquet files, in turns with the runs. Spark's rebuild is
``CREATE TABLE ... AS`` of the same SQL over the same files, in the same session. A query that no change has touched
counts in the run, but not in the mean over queries.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from typing import Any

from benchmarks import meter, rounds
from benchmarks.results import add_options, geometric_mean, read, write
from benchmarks.tpch.bench import Bench
from benchmarks.tpch.refresh_feed import RefreshFeed


def main() -> int:
    """0 when every model was exact at the end."""
    options = _arguments()
    folder = options.folder.resolve()
    feed = RefreshFeed(folder, options.scale, options.resume)
    events = folder / "events" / str(time.time_ns())
    if not options.resume:
        shutil.rmtree(folder / "state", ignore_errors=True)
    spark = rounds.session(folder, options.schema, meter.settings(events))
    bench = Bench(spark, folder, feed, meter.Meter(events), options.only, options.schema)
    results: dict[str, Any] = {"scale": options.scale, "orders": feed.orders, "repeats": options.repeats}
    known = read(options.json)["results"] if options.resume and options.json.exists() else {}
    known = known if known.get("scale") == options.scale else {}
    if not options.resume:
        results["first_load"] = bench.run()
    elif "first_load" in known:
        results["first_load"] = known["first_load"]
    rebuilt = known.get("rebuild", {})
    repeats = options.rebuilds or options.repeats
    results["rebuild"] = {name: rebuilt.get(name) or bench.rebuild(name, repeats) for name in bench.models}
    results["refreshes"] = []
    for where, share in ((where, share) for where in options.where for share in options.shares):
        made = bench.refreshes(where, round(feed.orders * share), options.repeats)
        results["refreshes"].append({"where": where, "share": share, **made})
        _report(results["refreshes"][-1], results["rebuild"])
    write(options.json, results)
    if options.state:
        results["state"] = bench.state()
        _report_state(results["state"])
        write(options.json, results)
    wrong = _wrong(bench) if options.verify else []
    return 1 if wrong else 0


def _wrong(bench: Bench) -> list[str]:
    """Models that differ from Spark's batch answer; each is told as soon as it is known."""
    wrong = []
    for name in bench.models:
        exact = bench.is_exact(name)
        print(f"{name} {'exact' if exact else 'WRONG'}", flush=True)
        wrong += [] if exact else [name]
    print(f"WRONG: {', '.join(wrong)}" if wrong else f"all exact: {len(bench.models)} models")
    return wrong


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor (default: 0.1)")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.001], help="of orders changed (default: 0.001)")
    parser.add_argument("--where", nargs="+", default=["recent", "random"], choices=["recent", "random"])
    parser.add_argument("--repeats", type=int, default=3, help="refreshes of each kind (default: 3)")
    parser.add_argument("--rebuilds", type=int, help="rebuilds by Spark (default: as many as refreshes)")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the folder's state; no first load, and no rebuild that the results file has",
    )
    parser.add_argument("--schema", default="tpch", help="of the models; that of a scaling run's state: tpch_10")
    parser.add_argument("--only", nargs="*", help="queries, such as q03")
    parser.add_argument("--verify", action="store_true", help="compare each model with Spark's batch answer at the end")
    parser.add_argument("--state", action="store_true", help="compact everything at the end, and tell its size")
    add_options(parser, "tpch_refresh")
    return parser.parse_args()


def _report(refresh: dict[str, Any], rebuild: dict[str, Any]) -> None:
    """A line for each query that was touched, and what all of them come to."""
    print(f"\n{refresh['where']}, {refresh['share']:.2%}")
    touched = {name: found for name, found in refresh["models"].items() if found["input_rows"]}
    ratios = {name: rebuild[name]["seconds"] / found["seconds"] for name, found in touched.items()}
    for name, found in touched.items():
        plain = rebuild[name]
        print(
            f"{name}  differential {found['seconds']:6.3f} s  Spark {plain['seconds']:6.2f} s  {ratios[name]:6.2f} x  "
            f"{found['jobs']:.0f} jobs, {found['read_bytes'] / 1e6:.1f} of {plain['read_bytes'] / 1e6:.1f} MB read"
        )
    if not touched:
        print("no query touched")
        return
    seconds = [found["seconds"] for found in touched.values()]
    print(f"queries touched: {len(touched)}; median {statistics.median(seconds):.3f} s, slowest {max(seconds):.3f} s")
    print(
        f"Spark's rebuild / differential: mean {geometric_mean(ratios.values()):.1f}, least {min(ratios.values()):.2f}"
    )
    print(
        f"run {refresh['seconds']:.2f} s, of which intake {refresh['intake']['seconds']:.2f} s; "
        f"DuckDB rebuilds them in {refresh['duckdb']:.2f} s: {refresh['duckdb'] / refresh['seconds']:.2f} x"
    )


def _report_state(state: dict[str, Any]) -> None:
    """The sizes, in MB and in relation to the sources' own files."""
    own = sum(state["own"].values())
    for kind in ("sources", "models"):
        for name, size in state[kind].items():
            print(f"state of {name}: {size / 1e6:.1f} MB")
    kept = sum(state["sources"].values()) + sum(state["models"].values())
    print(f"state {kept / 1e6:.0f} MB of {own / 1e6:.0f} MB of Parquet: {kept / own:.2f}")
    print(f"driver memory at its peak: {state['driver_memory'] / 1e6:.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
