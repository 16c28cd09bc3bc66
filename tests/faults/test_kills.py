"""The process is ended, as by SIGKILL, wherever what is stored changes; the next run needs nobody, and is exact.

A slice of it by default, each process with a JVM of its own, which ends with it; all points with ``make torture``, over a
Spark Connect server that outlives them, and processes with their JVMs at any time.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

import dbt_incremental_dd

PACKAGE = Path(dbt_incremental_dd.__file__).parent
ROOT = Path(__file__).parents[2]
KINDS = {
    "again": ("feed", "run"),
    "vacuum": ("feed", "run", "compact"),
    "compact": ("feed", "run", "compact", "feed", "run"),
    "merge": ("feed", "run", "feed", "run"),
    "drop": ("feed", "spare"),
    "rebuild": ("feed",),
    "run": ("feed",),
}
"""Acts that are ended, after others; the first run of all is one more, in a folder of its own."""
MADE_UP_FOR = ("run", "check")
UNREACHED = {"columns: before", "columns: added"}
"""No operator adds columns to what it stores."""
UNREACHED |= {"publish: sent", "publish: committed"}
UNREACHED |= {"slot: before", "slot: advanced", "slot: made", "table: copied", "log: read", "rows: put aside"}
UNREACHED |= {"snapshot: made"}
"""Of topics and of a database's log: `make kafka`, `make postgres` and `make mysql` end processes there."""
UNREACHED |= {"table: aside", "table: replaced", "changes: dropped"}
"""Of a model that changes its materialization: tests/dbt/test_switching.py."""
ONLY_AT_FIRST = {"log: before", "log: created", "view: made", "index of pages: before"}
SLICE = ("state: committed", "model: committed")


def points() -> set[str]:
    """All that the package has."""
    texts = (path.read_text() for path in PACKAGE.rglob("*.py"))
    return {name for text in texts for name in re.findall(r'\breached\("([^"]+)"\)', text)}


def worker(folder: Path, *acts: str, server: str = "", seconds: float | None = None) -> int:
    """The exit code of a process that does these acts, or is ended after some seconds; a failed one is told. Its JVM ends
    with it, in the middle of whatever it does."""
    command = [sys.executable, "-m", "tests.faults.worker", str(folder), *acts]
    environment = {**os.environ, **({"SPARK_REMOTE": server} if server else {})}
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=told, stderr=told, text=True, start_new_session=True
        )
        try:
            process.wait(seconds or 600)
        except subprocess.TimeoutExpired:
            assert seconds, f"{' '.join(acts)} does not end"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        told.seek(0)
        assert code in (0, -signal.SIGKILL), f"{' '.join(acts)}\n{told.read()[-8000:]}"
    return code


def test_runs_that_are_killed_are_made_up_for(tmp_path: Path) -> None:
    """Some points of a run by deltas."""
    acts = ["feed", "run"]
    for point in SLICE:
        assert worker(tmp_path, *acts, "feed", f"run@{point}") == -signal.SIGKILL, point
        acts = ["run", "check"]
    assert worker(tmp_path, *acts) == 0


class Torture:
    """Every point of some acts; what was reached and ended so far."""

    def __init__(self, folder: Path, server: str) -> None:
        self.ended: set[str] = set()
        self.kills: list[str] = []
        self._folder = folder
        self._server = server

    def first_runs(self) -> None:
        """A first run that is ended, and made up for, each in a folder of its own."""
        for number, (point, which) in enumerate(self._chosen("recorded", "fresh", "feed", "run")):
            self._end(f"first {number}", "fresh", "feed", f"run@{point}#{which}")
            self._succeed(f"first {number}", "run", "feed", "run", "check")
            shutil.rmtree(self._folder / f"first {number}")

    def later_acts(self) -> None:
        """All others, in one folder that lives through all of it."""
        self._chosen("later", "fresh", "feed", "run")
        for point in ("source: committed", "state: committed", "model: committed", "links: all made"):
            self._end("later", *MADE_UP_FOR, "feed", f"run@{point}#2")
            for again in ("commit: before", "commit: done"):
                self._end("later", f"run@{again}")
        self._end("later", *MADE_UP_FOR, "feed", "run@state: committed")
        self._end("later", "run@state: taken back")
        for kind, acts in KINDS.items():
            for point, which in self._chosen("later", *MADE_UP_FOR, *acts, kind, also_first=kind == "run"):
                self._end("later", *MADE_UP_FOR, *acts, f"{kind}@{point}#{which}")
        self._succeed("later", *MADE_UP_FOR, "vacuum", "check")

    def _chosen(self, name: str, *acts: str, also_first: bool = False) -> list[tuple[str, int]]:
        """Each point that the last act reaches: some time that it does; the first time too."""
        noted = self._folder / "points"
        noted.unlink(missing_ok=True)
        self._succeed(name, *acts[:-1], f"{acts[-1]}>{noted}")
        counts = Counter(noted.read_text().splitlines())
        rng = random.Random(5)
        chosen = {(point, rng.randint(1, n)) for point, n in sorted(counts.items())}
        return sorted(chosen | {(point, 1) for point in counts if also_first})

    def _succeed(self, name: str, *acts: str) -> None:
        assert self._worker(name, *acts) == 0, f"{name}: {acts}"

    def _end(self, name: str, *acts: str) -> None:
        """The last act is ended. Its input is another one each time: where it does not come to the point so often, it is
        the first time that it does, and where it does not at all in three times that is left to another act."""
        *before, last = acts
        first = f"{last.partition('#')[0]}#1"
        if any(self._worker(name, *before, act) == -signal.SIGKILL for act in (last, first, first)):
            self.ended.add(last.partition("@")[2].partition("#")[0])
            self.kills.append(last)
            (self._folder / "kills").write_text("\n".join(self.kills))

    def _worker(self, name: str, *acts: str) -> int:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        started = time.monotonic()
        code = worker(folder, *acts, server=self._server)
        with (self._folder / "acts").open("a") as done:
            done.write(f"{time.monotonic() - started:.0f} s: {name}: {' '.join(acts)}\n")
        return code


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_every_point_of_a_first_run(tmp_path: Path, connect_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    torture = Torture(tmp_path, connect_server)
    torture.first_runs()
    assert torture.ended >= ONLY_AT_FIRST
    tell(torture, capsys)


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_every_point_of_later_acts(tmp_path: Path, connect_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And of what makes up for them."""
    torture = Torture(tmp_path, connect_server)
    torture.later_acts()
    assert points() - torture.ended <= UNREACHED | ONLY_AT_FIRST, "points at which nothing was ended"
    tell(torture, capsys)


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_processes_and_their_jvms_at_any_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not at points of Python alone: also while Spark writes."""
    rng, ended, trials = random.Random(os.environ.get("SEED", "1")), 0, int(os.environ.get("TRIALS", "20"))
    assert worker(tmp_path, "feed", "run", "feed") == 0
    started = time.monotonic()
    assert worker(tmp_path, "run", "compact", "feed") == 0
    longest = time.monotonic() - started
    for _ in range(trials):
        ended += worker(tmp_path, "run", "compact", seconds=rng.uniform(0.3, 1) * longest) == -signal.SIGKILL
        assert worker(tmp_path, "run", "check", "feed") == 0
    with capsys.disabled():
        print(f"\n{ended} of {trials} processes ended with their JVMs, every state exact afterwards")


def tell(torture: Torture, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{len(torture.ended)} points, {len(torture.kills)} kills, every state exact afterwards")
