"""The process is ended between a collection's commit and its table's: the next run makes up for it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from dbt_incremental_dd.open_table.registry import FORMATS
from tests.fork_server import fork_server
from tests.open_table.test_random import Rounds
from tests.open_table.written import Written

_POINTS = ("file: before", "file: written", "table: vectors written", "table: before its commit", "table: committed")


@pytest.mark.parametrize(
    ("point", "format"), [*((point, "delta") for point in _POINTS), *((point, "iceberg") for point in _POINTS[2:])]
)
def test_a_table_that_a_killed_run_has_left_behind(tmp_path: Path, point: str, format: str) -> None:
    written = Written(tmp_path, format)
    rounds = Rounds(written, 7)
    for t in range(100, 120):
        rounds.step(t)
    for number, t in enumerate(range(120, 126)):
        rounds.change(t)
        before = written.shown()
        command = ["tests.open_table.killed", str(tmp_path), format, f"{point}#{number % 2 + 1}"]
        code, told = fork_server("tests.open_table.killed").call(command, os.environ, Path.cwd())
        assert code in (0, -signal.SIGKILL), told
        assert written.shown() in (before, written.as_of(t)), t
        if number % 3 == 2:  # else the next one finds two changes
            assert not written.show().why
            assert written.shown() == written.as_of(t), t
    rounds.step(126)
    assert written.shown() == written.as_of(126)


@pytest.mark.parametrize("format", FORMATS)
def test_every_point_is_among_them(tmp_path: Path, format: str) -> None:
    written = Written(tmp_path, format)
    rounds, noted = Rounds(written, 7), tmp_path / "points"
    for t in range(100, 110):
        rounds.step(t)
    rounds.change(110)
    command = ["tests.open_table.killed", str(tmp_path), format, "", str(noted)]
    code, told = fork_server("tests.open_table.killed").call(command, os.environ, Path.cwd())
    assert code == 0, told
    assert set(noted.read_text().splitlines()) == set(_POINTS)
