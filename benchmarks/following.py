"""Following models: how soon a line of a file is at a web socket, what a change costs on the wire, many subscribers.

``python -m benchmarks.following --rounds 50 --rows 1000000 --subscribers 200``

The time is that from the append to the source's file to the batch at the client, with ``dbt-dd watch`` at work, as a
multiple of one warm small Spark job in the same session. Bytes are those of the messages; memory is that of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.results import add_options, write
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.types import LONG, STRING

EXAMPLE = Path(__file__).parents[1] / "example_project" / "wikirecent"
CHANGED = 10


def main() -> int:
    """0 when every client has been told every change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50, help="lines appended, after ten to warm up (default: 50)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the view (default: 1 million)")
    parser.add_argument("--subscribers", type=int, default=200, help="of one view (default: 200)")
    add_options(parser, "following")
    options = parser.parse_args()
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    results = {
        "economy": economy(folder / "economy", options.rows),
        "many": asyncio.run(many(folder / "many", options.subscribers)),
        "freshness": freshness(folder / "freshness", options.rounds),
    }
    for name, found in results.items():
        print(name, json.dumps(found))
    write(options.json, results)
    return 0


@contextmanager
def server(root: Path, *arguments: str) -> Iterator[tuple[int, int, int | None]]:
    """``dbt-dd serve`` in a process of its own: its port, its process, and with ``--pgwire`` among the arguments its
    port for the Postgres protocol."""
    command = [sys.executable, "-m", "dbt_incremental_dd.cli", "--state-root", str(root), "serve", "--port", "0"]
    command += arguments
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])
        told = process.stdout.readline().split() if "--pgwire" in arguments else None
        yield port, process.pid, int(told[told.index("-p") + 1]) if told else None
    finally:
        process.terminate()
        process.wait(20)


class View:
    """``shop.totals(id, total, note)``, written without Spark."""

    def __init__(self, root: Path, rows: int) -> None:
        from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
        from dbt_incremental_dd.trace.layout import Storage

        visible = Schema((Column("id", LONG), Column("total", LONG), Column("note", STRING)))
        self.place = Storage(str(root)).collection("shop.totals")
        self.schema = Schema((*visible.columns, TIME_COLUMN, DIFF_COLUMN))
        self.place.create(self.schema)
        self.manifest = self.place.write_manifest(ModelManifest(schema=visible))
        self.round = 0
        self._commit(range(rows), [0], [1])

    def change(self) -> int:
        """Some rows have another total; the time of it."""
        self.round += 1
        return self._commit(range(CHANGED), [self.round - 1, self.round], [-1, 1])

    def _commit(self, ids: range, totals: list[int], diffs: list[int]) -> int:
        from dbt_incremental_dd.core.time import now
        from dbt_incremental_dd.trace.commit import Commit
        from dbt_incremental_dd.trace.write import write_arrow

        log = self.place.log()
        assert log is not None
        t = max(now(), log.frontiers.upper)
        count = len(ids) * len(totals)
        columns = [
            pa.array([one for one in ids for _ in totals]),
            pa.array([total for _ in ids for total in totals]),
            pa.array([f"customer {one}" for one in ids for _ in totals]),
            pa.array([t] * count),
            pa.array([diff for _ in ids for diff in diffs]),
        ]
        table = pa.table(columns, names=list(self.schema.names))
        file = write_arrow(self.place.storage, self.place.trace_uri, table, log.schema)
        log.commit(Commit(add=(file,), upper=t + 1, manifest=self.manifest))
        return t


def economy(root: Path, rows: int) -> dict[str, Any]:
    """Bytes of the snapshot of a view, and of a change of some of its rows: all of it, by key, and a selection."""
    from websockets.sync.client import connect

    view, found = View(root, rows), {"rows": rows, "changed": CHANGED}
    with server(root) as (port, _, _):
        for name, query in (("diffs", ""), ("by key", "?key=id"), ("selection", "?select=id,total&where=id<5")):
            with connect(f"ws://127.0.0.1:{port}/collections/totals/changes{query}", max_size=None) as web:
                snapshot, told = 0, True
                while told:
                    message = web.recv(timeout=120)
                    snapshot, told = snapshot + len(message), json.loads(message).get("more", False)
                view.change()
                found[f"{name}: snapshot bytes"], found[f"{name}: change bytes"] = snapshot, len(web.recv(timeout=60))
    return found


async def many(root: Path, subscribers: int) -> dict[str, Any]:
    """Memory of the server, in bytes, before there are subscribers, with all of them, and after changes; and how long
    after a commit the last of them is told, in seconds."""
    from websockets.asyncio.client import connect

    view = View(root, 1_000)
    with server(root) as (port, pid, _):
        before, url = _memory(pid), f"ws://127.0.0.1:{port}/collections/totals/changes"
        clients = await asyncio.gather(*(connect(url, max_size=None) for _ in range(subscribers)))
        try:
            await asyncio.gather(*(client.recv() for client in clients))
            joined, late, memory = _memory(pid), [], []
            for _ in range(2_000):
                began = time.monotonic()
                t = await asyncio.to_thread(view.change)
                told = await asyncio.gather(*(client.recv() for client in clients))
                assert all(json.loads(message)["timestamp"] == t for message in told)
                late.append(time.monotonic() - began)
                memory.append(_memory(pid))
        finally:
            await asyncio.gather(*(client.close() for client in clients))
    return {
        "subscribers": subscribers,
        "memory before": before,
        "memory joined": joined,
        **{f"memory after {n} changes": memory[n - 1] for n in (100, 500, 1_000, 1_500, 2_000)},
        "median seconds": round(statistics.median(late), 3),
        "p95 seconds": round(sorted(late)[1_899], 3),
    }


def _memory(pid: int) -> int:
    found = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(found.stdout) * 1024


def freshness(folder: Path, rounds: int) -> dict[str, Any]:
    """Seconds from a line to its batch, of the example's three models; and of one small Spark job."""
    from pyspark.sql import SparkSession
    from websockets.sync.client import connect

    from dbt_incremental_dd.watch.project import Project
    from dbt_incremental_dd.watch.watcher import Intervals, WatchedProject, watch
    from example_project.wikirecent.feed import Feed

    ignored = shutil.ignore_patterns("data", "target", "logs", ".dbt*", "__pycache__")
    shutil.copytree(EXAMPLE, folder, ignore=ignored)
    feed = Feed(folder / "data")
    feed.start()
    stop, lines = threading.Event(), []
    watched = WatchedProject(Project(str(folder), str(folder)), lines.append, Intervals(every=0, compaction=0))
    watching = threading.Thread(target=watch, args=([watched], stop))
    watching.start()
    while not lines:
        time.sleep(0.1)
    spark = SparkSession.builder.getOrCreate()
    late: dict[str, list[float]] = {"counter": [], "editors": []}
    jobs = []
    with server(folder / ".dbt_incremental_dd") as (port, _, _):
        url = f"ws://127.0.0.1:{port}/collections"
        with connect(f"{url}/counter/changes") as counter, connect(f"{url}/editors/changes?where=false") as editors:
            edits = json.loads(counter.recv())["inserted"][0]["edits"]
            editors.recv()
        with (
            connect(f"{url}/counter/changes?snapshot=false") as counter,
            connect(f"{url}/editors/changes?snapshot=false") as editors,
        ):
            for _ in range(rounds + 10):
                time.sleep(0.5)
                began = time.monotonic()
                spark.range(1_000).selectExpr("sum(id)").collect()
                jobs.append(time.monotonic() - began)
                time.sleep(0.2)
                began = time.monotonic()
                feed.append(20)
                edits += 20
                while (told := json.loads(counter.recv(timeout=60)))["inserted"][0]["edits"] != edits:
                    pass
                late["counter"].append(time.monotonic() - began)
                while json.loads(editors.recv(timeout=60))["timestamp"] < told["timestamp"]:
                    pass
                late["editors"].append(time.monotonic() - began)
    stop.set()
    watching.join(60)
    job = statistics.median(jobs[10:])
    summary: dict[str, Any] = {"rounds": rounds, "job seconds": round_(job)}
    for name, found in ((name, each[10:]) for name, each in late.items()):
        median, p95 = statistics.median(found), sorted(found)[int(len(found) * 0.95)]
        summary[name] = {"median": round_(median), "p95": round_(p95)}
        summary[name] |= {"median in jobs": round_(median / job), "p95 in jobs": round_(p95 / job)}
    return summary


def round_(value: float) -> float:
    """To what the figures are good for."""
    return round(value, 3)


if __name__ == "__main__":
    sys.exit(main())
