"""One holder at a time; whoever waits is told by whom it is held up, and not for ever."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from dbt_incremental_dd.core import file_lock


def test_the_second_waits_until_the_first_lets_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "_REPORT_SECONDS", 0.0)
    path, told = str(tmp_path / "lock"), []
    first = file_lock.acquire(path, 1, told.append, lambda: True)
    assert not told
    threading.Timer(0.2, os.close, [first]).start()
    os.close(file_lock.acquire(path, 10, told.append, lambda: True))
    assert told == [str(os.getpid())]


def test_nobody_waits_for_ever(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    first = file_lock.acquire(path, 1, print, lambda: True)
    with pytest.raises(TimeoutError, match=str(os.getpid())):
        file_lock.acquire(path, 0.05, print, lambda: True)
    os.close(first)
    with pytest.raises(TimeoutError):
        file_lock.acquire(path, 0.05, print, lambda: False)
    os.close(file_lock.acquire(path, 1, print, lambda: True))


def test_what_nobody_has_is_free(tmp_path: Path) -> None:
    assert not file_lock.is_locked_by_another(str(tmp_path / "none"))
    (tmp_path / "some").touch()
    assert not file_lock.is_locked_by_another(str(tmp_path / "some"))
