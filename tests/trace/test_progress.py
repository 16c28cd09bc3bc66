"""Progress of what takes long."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dbt_incremental_dd.trace import progress
from dbt_incremental_dd.trace.layout import Storage


def test_what_is_written_meanwhile_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.05)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "before").write_bytes(b"x" * 9_999_999)
    time.sleep(0.05)
    lines: list[str] = []
    with progress.progress(Storage(str(tmp_path)), str(tmp_path), "loading s.t", lines.append):
        (tmp_path / "data" / "new").write_bytes(b"x" * 1_500_000)
        time.sleep(0.3)
    assert lines and lines[-1] == "loading s.t: 0 s, 1.5 MB written"


def test_what_is_done_soon_says_nothing(tmp_path: Path) -> None:
    lines: list[str] = []
    with progress.progress(Storage(str(tmp_path)), f"{tmp_path}/nothing", "loading s.t", lines.append):
        pass
    assert not lines


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1200, "1.2 kB"), (3_400_000, "3.4 MB"), (5 * 10**12, "5.0 TB")],
)
def test_sizes_are_for_people(size: int, text: str) -> None:
    assert progress.size_text(size) == text
