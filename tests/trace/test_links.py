"""Folders of hard links that show a trace's files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.storage.links import follow, forget, link_all


def file(root: Path, name: str) -> DataFile:
    (root / "data").mkdir(parents=True, exist_ok=True)
    (root / "data" / name).write_text(name)
    return DataFile(f"data/{name}", 1, 1, 0, 0, 1, 1)


def shown(folder: Path) -> list[str]:
    return sorted(path.read_text() for path in folder.iterdir() if not path.name.startswith("."))


def test_one_file_more_is_linked(tmp_path: Path) -> None:
    root, live = tmp_path / "trace", tmp_path / "live"
    a, b = file(root, "a"), file(root, "b")
    assert link_all(str(live), str(root), [a]) == 1
    assert follow(str(live / "1"), str(root), [a])
    assert shown(live / "1") == ["a"]
    assert follow(str(live / "1"), str(root), [a, b])
    assert shown(live / "1") == ["a", "b"]


@pytest.mark.parametrize("names", ["b", "bc", "abcd"])
def test_any_other_change_is_left_to_a_new_folder(tmp_path: Path, names: str) -> None:
    root, live = tmp_path / "trace", tmp_path / "live"
    files = [file(root, name) for name in names]
    link_all(str(live), str(root), [file(root, "a"), file(root, "b")])
    assert not follow(str(live / "1"), str(root), files)
    assert shown(live / "1") == ["a", "b"]
    assert link_all(str(live), str(root), files) == 2
    assert shown(live / "2") == sorted(names)


def test_folders_go_when_they_are_shown_no_more_and_nobody_can_be_reading_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, live = tmp_path / "trace", tmp_path / "live"
    for _ in range(3):
        link_all(str(live), str(root), [file(root, "a")])
    forget(str(live), [3])
    assert sorted(path.name for path in live.iterdir()) == ["1", "2", "3"]
    monkeypatch.setattr("dbt_incremental_dd.storage.links.STILL_READ", -1.0)
    forget(str(live), [3, 2])
    assert sorted(path.name for path in live.iterdir()) == ["2", "3"]


def test_what_cannot_be_linked_leaves_no_folder(tmp_path: Path) -> None:
    gone = DataFile("data/gone", 1, 1, 0, 0, 1, 1)
    assert link_all(str(tmp_path / "live"), str(tmp_path), [gone]) == 0
    assert not list((tmp_path / "live").iterdir())
    assert not follow(str(tmp_path / "live" / "1"), str(tmp_path), [gone])


def test_a_folder_that_somebody_else_makes_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, live = tmp_path / "trace", tmp_path / "live"
    a, b = file(root, "a"), file(root, "b")
    link_all(str(live), str(root), [a])
    monkeypatch.setattr("os.path.isdir", lambda path: False)  # as it was a moment ago
    assert link_all(str(live), str(root), [a, b]) == 0
    assert shown(live / "1") == ["a"]
