"""The process is ended, as by SIGKILL, wherever what is stored changes; the next run needs nobody, and is exact.

A slice of it by default, all points with ``make torture``.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
from collections import Counter
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
    noted = folder / f"{acts[-1]}.points"
    assert worker(folder, *acts[:-1], f"{acts[-1]}>{noted}") == 0
    return Counter(noted.read_text().splitlines())


def test_runs_that_are_killed_are_made_up_for(tmp_path: Path) -> None:
    """Some points of a run by deltas."""
    acts = ["feed", "run"]
    for point in SLICE:
        assert worker(tmp_path, *acts, "feed", f"run@{point}") == -signal.SIGKILL, point
        acts = ["run", "check"]
    assert worker(tmp_path, *acts) == 0


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_every_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each point of each act, more than once; and one in the middle of making up for another."""
    rng = random.Random(5)
    first = tmp_path / "first"
    first.mkdir()
    reached = {"first": recorded(first, "feed", "run")}
    home = first
    for kind in KINDS:
        reached[kind] = recorded(home, "run", *KINDS[kind], kind)
    kills = [(kind, point, rng.randint(1, n)) for kind in reached for point, n in sorted(reached[kind].items())]
    kills += [("run", point, 1) for point, n in sorted(reached["run"].items()) if n > 1]
    for number, (kind, point, which) in enumerate(kills):
        if kind == "first":
            fresh = tmp_path / str(number)
            fresh.mkdir()
            assert worker(fresh, "feed", f"run@{point}#{which}") == -signal.SIGKILL, (kind, point, which)
            assert worker(fresh, "run", "check", "feed", "run", "check") == 0, (kind, point, which)
        else:
            acts = ("run", "check", *KINDS[kind], f"{kind}@{point}#{which}")
            assert worker(home, *acts) == -signal.SIGKILL, (kind, point, which)
    assert worker(home, "run", "check", "feed", "run@state: committed") == -signal.SIGKILL
    assert worker(home, "run@state: taken back") == -signal.SIGKILL
    assert worker(home, "run", "check", "vacuum", "check") == 0
    seen = {point for counts in reached.values() for point in counts} | {"state: taken back"}
    assert points() - seen == UNREACHED, "points that no act reaches"
    with capsys.disabled():
        print(f"\n{len(seen)} points, {len(kills) + 2} kills, every state exact afterwards")
