"""Two projects whose pages move as data arrives: edits of wikis, and visits of a web site.

What comes from outside is generated, a little of it every moment; models are brought up to date as soon as it is
there, and browsers are told what has changed. Ends with Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

STATE = HERE / ".dbt_incremental_dd"
PROJECTS = ("wikirecent", "clickstream")


def main() -> None:
    """Everything anew: the first states, and then what comes."""
    from dbt_incremental_dd.serve.server import ServerOptions, Sockets
    from dbt_incremental_dd.watch.project import Project
    from dbt_incremental_dd.watch.watcher import Intervals, WatchedProject, watch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8580, help="of the pages (default: 8580)")
    parser.add_argument("--pgwire", type=int, default=6875, help="of the Postgres protocol (default: 6875)")
    parser.add_argument("--minutes", type=float, help="after which it ends (default: never)")
    options = parser.parse_args()
    os.environ["DIFFERENTIAL_STATE_ROOT"] = str(STATE)
    stop = threading.Event()
    server = ServerOptions(port=options.port, wire=options.pgwire, pages=HERE / "live")
    sockets = Sockets.of(server)
    threads = [threading.Thread(target=_feed, args=(step, stop)) for step in _first_states()]
    threads.append(threading.Thread(target=_serve, args=(server, sockets, stop)))
    intervals = Intervals(every=30, compaction=120)
    projects = [WatchedProject(Project(str(HERE / name), str(HERE / name)), intervals=intervals) for name in PROJECTS]
    if options.minutes:
        threading.Timer(60 * options.minutes, stop.set).start()
    try:
        for watched in projects:
            watched.begin()
        for thread in threads:
            thread.start()
        watch(projects, stop)
    except KeyboardInterrupt:
        print("Ending.")
    finally:
        stop.set()
        for thread in threads:
            if thread.is_alive():
                thread.join(10)


def _first_states() -> list[Callable[[], float]]:
    """Writes them; what adds a little to each, and tells the seconds until there is more."""
    from example_project.clickstream.feed import Feed as Visits
    from example_project.wikirecent.feed import Feed as Edits

    shutil.rmtree(STATE, ignore_errors=True)
    for name in PROJECTS:
        for generated in ("data", "target", "logs"):
            shutil.rmtree(HERE / name / generated, ignore_errors=True)
    rng = random.Random()
    edits, visits = Edits(HERE / "wikirecent" / "data", 3_000), Visits(HERE / "clickstream" / "data", 20_000)
    edits.start()
    visits.start()
    round, busy = 0, 1

    def edit() -> float:
        nonlocal busy
        busy = rng.randint(1, 40) if rng.random() < 0.1 else busy
        edits.append(rng.randint(1, 12), busy)
        return rng.uniform(0.1, 1.5)

    def visit() -> float:
        nonlocal round
        round += 1
        visits.advance(round, rng.randint(1, 40))
        return rng.uniform(1, 4)

    return [edit, visit]


def _feed(step: Callable[[], float], stop: threading.Event) -> None:
    while not stop.wait(step()):
        pass


def _serve(server: Any, sockets: Any, stop: threading.Event) -> None:
    from dbt_incremental_dd.api import Database
    from dbt_incremental_dd.serve.server import run

    asyncio.run(run(Database(str(STATE)), server, sockets, print, stop))


if __name__ == "__main__":
    main()
