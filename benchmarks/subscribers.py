"""Many subscribers of one view: what is delivered to them, how soon, and what it costs the server.

``python -m benchmarks.subscribers --protocol sse ws pgwire --clients 1000 --seconds 30``

All clients connect at once, in a process of their own that reads raw sockets; then one commit comes each second.
A latency is that from the commit's time, which is taken before its file is written, to the client's having read
all of it. Memory, threads and CPU seconds are those of the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.clients import PROTOCOLS
from benchmarks.following import CHANGED, View, server
from benchmarks.results import add_options, write

_TICK = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """0 when every client has been told every change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--protocol", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS), help="(default: all)")
    parser.add_argument("--clients", type=int, default=1_000, help="(default: 1000)")
    parser.add_argument("--seconds", type=int, default=30, help="with one commit each (default: 30)")
    parser.add_argument("--rows", type=int, default=1_000, help="of the view (default: 1000)")
    add_options(parser, "subscribers")
    options = parser.parse_args()
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    results = []
    for protocol in options.protocol:
        found = asyncio.run(subscribers(folder / protocol, protocol, options.clients, options.seconds, options.rows))
        print(json.dumps(found), flush=True)
        results.append(found)
    write(options.json, results)
    return 0 if all(one["delivered"] == one["expected"] for one in results) else 1


async def subscribers(root: Path, protocol: str, clients: int, seconds: int, rows: int) -> dict[str, Any]:
    """What one protocol gives. Times in seconds, memory in bytes."""
    root.mkdir(parents=True)
    view = View(root, rows)
    with server(root, "--pgwire", "0") as (port, pid, wire):
        before, load = _usage(pid), os.getloadavg()[0]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.clients", protocol, str(wire if protocol == "pgwire" else port)),
            *(str(clients), str(rows), str(2 * CHANGED)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None and process.stdout is not None
        began = time.monotonic()
        joined = json.loads(await process.stdout.readline())
        joining, held = time.monotonic() - began, _usage(pid)
        due, times = time.monotonic(), []
        for _ in range(seconds):
            due += 1
            await asyncio.sleep(max(due - time.monotonic(), 0))
            times.append(await asyncio.to_thread(view.change))
        told, _ = await process.communicate(f"{len(times)}\n".encode())
        after = _usage(pid)
    found = json.loads(told)
    return {
        **{"protocol": protocol, "clients": clients, "joined": joined["joined"], "commits": seconds},
        **{"delivered": found["delivered"], "expected": clients * len(times)},
        **{name: found[name] for name in ("p50", "p99", "max")},
        "seconds to join": round(joining, 2),
        "CPU seconds to join": round(held["cpu"] - before["cpu"], 2),
        "CPU seconds": round(after["cpu"] - held["cpu"], 2),
        "client CPU seconds": found["cpu"],
        **{"memory before": before["memory"], "memory joined": held["memory"], "memory at most": after["most"]},
        **{"threads before": before["threads"], "threads": after["threads"]},
        "load before": round(load, 2),
    }


def _usage(pid: int) -> dict[str, Any]:
    """Memory and its peak in bytes, threads, and CPU seconds of a process, as Linux tells them."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return {
        "memory": int(status["VmRSS"].split()[0]) * 1024,
        "most": int(status["VmHWM"].split()[0]) * 1024,
        "threads": int(status["Threads"]),
        "cpu": (int(times[11]) + int(times[12])) / _TICK,
    }


if __name__ == "__main__":
    sys.exit(main())
