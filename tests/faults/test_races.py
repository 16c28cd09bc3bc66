"""Runs, compaction, readers and subscribers at once, each a process of its own, over one Spark Connect server.

A few rounds by default, at least 200 with ``make torture``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.racer import Bank

ROOT = Path(__file__).parents[2]
ROLES = ("run", "run", "compact", "read", "read", "query", "follow")


class Race:
    """The processes over one folder."""

    def __init__(self, folder: Path, server: str) -> None:
        self._folder = folder
        self._environment = {**os.environ, "SPARK_REMOTE": server}
        self._bank = Bank(folder)
        self._do("once")

    def _start(self, role: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.faults.racer", role, str(self._folder)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=pipe, stderr=pipe, text=True)

    def _do(self, role: str) -> dict[str, Any]:
        return self._end(self._start(role))

    def _end(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        out, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors[-6000:]
        return dict(json.loads(out.splitlines()[-1]))

    def go(self, rounds: int, seconds: float) -> list[dict[str, Any]]:
        """Transfers until the runners have done so many rounds, or until it takes too long; what each has seen."""
        racing = [self._start(role) for role in ROLES]
        started = time.monotonic()
        done = self._folder / "rounds"
        while time.monotonic() - started < seconds and all(one.poll() is None for one in racing):
            self._bank.transfer()
            if done.exists() and len(done.read_bytes()) >= rounds:
                break
            time.sleep(0.5)
        (self._folder / "stop").touch()
        return [self._end(one) for one in racing]


def race(folder: Path, server: str, rounds: int, seconds: float) -> None:
    found = Race(folder, server).go(rounds, seconds)
    wrong = [line for one in found for line in one["wrong"]]
    assert not wrong, "\n".join(wrong)
    seen = {role: [one["seen"] for one in found if one["role"] == role] for role in ROLES}
    assert sum(one["rounds"] for one in seen["run"]) >= rounds, seen
    for role, what in (("compact", "compacted"), ("read", "read"), ("query", "queried"), ("follow", "changes")):
        assert all(one.get(what) for one in seen[role]), seen
    print(json.dumps(seen))


def test_nobody_sees_half_a_change(tmp_path: Path, connect_server: str) -> None:
    race(tmp_path, connect_server, rounds=6, seconds=240)


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_200_rounds(tmp_path: Path, connect_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        race(tmp_path, connect_server, rounds=200, seconds=5400)
