"""What CI runs of the tests that are too many for each commit: another part of them in turn.

``long_tests.txt`` has the tests that take long, each with its seconds. CI runs a third of them for each commit, by the
commit's time; all thirds take about as long. A test that is not in the file, as a new one, is run for each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

TURN = os.environ.get("DD_TURN")
"""CI's number of the commit, which is its time; not given elsewhere, where all long tests run."""
PARTS = 3
LONG_TESTS = Path(__file__).with_name("long_tests.txt")
LONG_SECONDS = 8.0
"""What makes a test a long one, on two cores with another process of tests beside it."""


def in_turn(parts: int) -> int:
    """The part whose turn it is, of those from 0 to below ``parts``; the first where no turn is given."""
    return int(TURN or 0) % parts


def long_tests(file: Path = LONG_TESTS) -> dict[str, float]:
    """The seconds of the long tests, by their ids."""
    lines = (line.split(" ", 1) for line in file.read_text().splitlines() if line)
    return {name: float(seconds) for seconds, name in lines}


def of_other_turns(names: Iterable[str], seconds: dict[str, float], turn: int) -> set[str]:
    """Those of the tests that are not run in this turn. The longest comes first, to the part with the least so far."""
    parts: list[list[str]] = [[] for _ in range(PARTS)]
    totals = [0.0] * PARTS
    for name in sorted({*names} & seconds.keys(), key=lambda name: (-seconds[name], name)):
        least = totals.index(min(totals))
        parts[least].append(name)
        totals[least] += seconds[name]
    return {name for number, part in enumerate(parts) if number != turn % PARTS for name in part}


class Recorder:
    """Keeps ``file`` up to the tests that are run: ``DD_SECONDS=1``. Those of files whose tests go on from one another
    are never left out."""

    def __init__(self, file: Path = LONG_TESTS) -> None:
        self._file = file
        self._seconds: dict[str, float] = {}
        self._in_order: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes what a test takes, without what is set up for others as well."""
        if report.when == "call":
            self._seconds[report.nodeid] = report.duration
            if "in_order" in report.keywords:
                self._in_order.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Writes the file anew."""
        before = {name: taken for name, taken in long_tests(self._file).items() if name not in self._seconds}
        now = {name: taken for name, taken in self._seconds.items() if name not in self._in_order}
        self._file.write_text(_lines({**before, **{name: s for name, s in now.items() if s >= LONG_SECONDS}}))


def _lines(seconds: dict[str, float]) -> str:
    found: Sequence[str] = sorted(seconds)
    return "".join(f"{seconds[name]:.0f} {name}\n" for name in found)
