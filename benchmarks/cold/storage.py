"""`dbt run` from a shell with its state on a local disk, and in S3, in turns: seconds, and requests.

``python -m benchmarks.cold.storage --projects payments wide --delay 0 30``

Each run is a process of its own, without Java; what is timed is everything, from its start to its end. The server is
beside the driver. A proxy before it counts requests, and delays each by so many ms.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from benchmarks.cold.pairs import PROJECTS, pair
from benchmarks.cold.run import DBT, is_exact, run
from tests.servers.cluster import on_class_path
from tests.servers.s3 import S3, serving
from tests.servers.slow_proxy import SlowProxy, slowed


def main() -> int:
    """0 if every model was exact in the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", nargs="*", default=["payments", "wide"], choices=PROJECTS)
    parser.add_argument("--rounds", type=int, default=3, help="of each kind of run (default: 3)")
    parser.add_argument("--delay", type=float, nargs="+", default=[0, 30], help="ms for each request (default: 0 30)")
    options = parser.parse_args()
    exact = True
    with tempfile.TemporaryDirectory() as made, serving(Path(made)) as s3, slowed(s3.endpoint) as proxy:
        for name in options.projects:
            exact &= _project(name, options.rounds, options.delay, s3, proxy)
    return 0 if exact else 1


def _project(name: str, rounds: int, delays: list[float], s3: S3, proxy: SlowProxy) -> bool:
    with tempfile.TemporaryDirectory() as made:
        both = pair(name, Path(made))
        disk, store = both.ours, Path(made) / f"{name}_in_store"
        _move(disk, store, f"{s3.root}/{name}", {**s3.options, "AWS_ENDPOINT_URL": proxy.endpoint})
        folders = {"disk": disk, "S3": store}
        for folder in folders.values():
            if (folder / "seeds").exists():
                run(DBT, folder, "seed")
            run(DBT, folder, "run")
        number = 1
        for delay in delays:
            for kind in ("warming up", "nothing changed", "changed"):
                seconds: dict[str, list[float]] = {where: [] for where in folders}
                proxy.take()
                for _ in range(1 if kind == "warming up" else rounds):
                    if kind != "nothing changed":
                        both.change(number)
                        number += 1
                    for where, folder in folders.items():
                        proxy.delay = delay / 1000 if where == "S3" else 0.0
                        seconds[where].append(run(DBT, folder, "run", java=kind == "warming up"))
                        proxy.delay = 0.0
                a, b = (statistics.median(found) for found in seconds.values())
                requests = len(proxy.take()) / len(seconds["S3"])
                if kind != "warming up":
                    told = f"disk {a:.2f} s, S3 {b:.2f} s, {b / a:.2f} x, {b - a:+.2f} s; {requests:.0f} requests"
                    print(f"{name}, {kind}, {delay:g} ms a request: {told}", flush=True)
        exact = is_exact(store)
        print(f"{name}: {'exact' if exact else 'WRONG'}", flush=True)
        return exact


def _move(project: Path, target: Path, root: str, options: Mapping[str, str]) -> None:
    """A copy of the project over the same sources, whose state is in the store."""
    shutil.copytree(project, target, ignore=shutil.ignore_patterns("data", "target", "logs", ".dbt*", "__pycache__"))
    if (project / "data").exists():
        (target / "data").symlink_to(project / "data")
    profiles = yaml.safe_load((target / "profiles.yml").read_text())
    for profile in profiles.values():
        for output in profile["outputs"].values():
            output |= {"state_root": f"{root}/state", "storage_options": dict(options)}
            output["server_side_parameters"] = {**output.get("server_side_parameters", {}), **on_class_path()}
    (target / "profiles.yml").write_text(json.dumps(profiles))


if __name__ == "__main__":
    sys.exit(main())
