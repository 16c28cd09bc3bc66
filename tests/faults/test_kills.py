"""The process is ended, as by SIGKILL, wherever what is stored changes; the next run needs nobody, and is exact.

A slice of it by default, all points with ``make torture``.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pytest

import dbt_incremental_dd

PACKAGE = Path(dbt_incremental_dd.__file__).parent
ROOT = Path(__file__).parents[2]
KINDS = {
    "run": ("feed",),
    "rebuild": ("feed",),
    "compact": ("feed", "run", "compact", "feed", "run"),
    "vacuum": ("feed", "run", "compact"),
    "again": ("feed", "run"),
}
"""Acts that are ended, after others; the first run of all is one more, in a folder of its own."""
MADE_UP_FOR = ("run", "check")
UNREACHED = {"columns: before", "columns: added"}
"""No operator adds columns to what it stores."""
SLICE = ("state: committed", "model: committed")


def points() -> set[str]:
    """All that the package has."""
    texts = (path.read_text() for path in PACKAGE.rglob("*.py"))
    return {name for text in texts for name in re.findall(r'\breached\("([^"]+)"\)', text)}


def worker(folder: Path, *acts: str) -> int:
    """The exit code of a process that does these acts; a failed one is told."""
    command = [sys.executable, "-m", "tests.faults.worker", str(folder), *acts]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, -signal.SIGKILL), f"{' '.join(acts)}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.returncode


def recorded(folder: Path, *acts: str) -> Counter[str]:
    """How often each point is reached by the last act."""
    noted = folder / "points"
    noted.unlink(missing_ok=True)
    assert worker(folder, *acts[:-1], f"{acts[-1]}>{noted}") == 0
    return Counter(noted.read_text().splitlines())


def test_runs_that_are_killed_are_made_up_for(tmp_path: Path) -> None:
    """Some points of a run by deltas."""
    acts = ["feed", "run"]
    for point in SLICE:
        assert worker(tmp_path, *acts, "feed", f"run@{point}") == -signal.SIGKILL, point
        acts = ["run", "check"]
    assert worker(tmp_path, *acts) == 0


class Torture:
    """Every point of every act, and what was reached and ended so far."""

    def __init__(self, folder: Path) -> None:
        self.reached: set[str] = set()
        self.kills: list[str] = []
        self._folder = folder

    def first_runs(self) -> None:
        """A first run that is ended, and made up for, each in a folder of its own."""
        for number, (point, which) in enumerate(self._chosen(recorded(self._made("recorded"), "feed", "run"))):
            folder = self._made(f"first_{number}")
            self._end(folder, "feed", f"run@{point}#{which}")
            assert worker(folder, *MADE_UP_FOR, "feed", "run", "check") == 0, (point, which)
            shutil.rmtree(folder)

    def later_acts(self) -> None:
        """All others, in one folder that lives through all of it."""
        folder = self._made("later")
        assert worker(folder, "feed", "run", "check") == 0
        for kind, acts in KINDS.items():
            counts = recorded(folder, *MADE_UP_FOR, *acts, kind)
            for point, which in self._chosen(counts, also_first=kind == "run"):
                self._end(folder, *MADE_UP_FOR, *acts, f"{kind}@{point}#{which}")
        for point in ("source: committed", "state: committed", "model: committed", "links: all made"):
            self._end(folder, *MADE_UP_FOR, "feed", f"run@{point}#2")
            for again in ("commit: before", "commit: done"):
                self._end(folder, f"run@{again}")
        self._end(folder, *MADE_UP_FOR, "feed", "run@state: committed")
        self._end(folder, "run@state: taken back")
        assert worker(folder, *MADE_UP_FOR, "vacuum", "check") == 0

    def _made(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir()
        return folder

    def _chosen(self, counts: Counter[str], also_first: bool = False) -> list[tuple[str, int]]:
        """Each point, some time that it is reached; the first time too."""
        self.reached |= set(counts)
        rng = random.Random(5)
        chosen = {(point, rng.randint(1, n)) for point, n in sorted(counts.items())}
        return sorted(chosen | {(point, 1) for point in counts if also_first})

    def _end(self, folder: Path, *acts: str) -> None:
        assert worker(folder, *acts) == -signal.SIGKILL, acts
        self.reached.add(acts[-1].partition("@")[2].partition("#")[0])
        self.kills.append(acts[-1])
        (self._folder / "kills").write_text("\n".join(self.kills))


@pytest.mark.torture
@pytest.mark.timeout(14400)
def test_every_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each act is ended at each point that it comes to, and so is what makes up for it."""
    torture = Torture(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        for done in as_completed([pool.submit(torture.first_runs), pool.submit(torture.later_acts)]):
            done.result()
    assert points() - torture.reached == UNREACHED, "points that no act reaches"
    with capsys.disabled():
        print(f"\n{len(torture.reached)} points, {len(torture.kills)} kills, every state exact afterwards")
