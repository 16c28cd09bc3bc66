"""Objects of a store, their copies on this machine, and copies within the store. The store is one in memory."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.storage import copies, mirror, uploads
from dbt_incremental_dd.storage.copies import Copies
from dbt_incremental_dd.storage.links import STILL_READ
from dbt_incremental_dd.storage.mirror import Mirror
from dbt_incremental_dd.storage.objects import Objects

ROOT = "mem://bucket/state"
TRACE = f"{ROOT}/collections/m.kept/trace"


@pytest.fixture
def objects() -> Objects:
    return Objects(MemoryStore(), "mem://bucket")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts requests by kind."""
    counted: Counter[str] = Counter()
    for name in ("get", "put", "head", "copy", "list"):
        monkeypatch.setattr(obstore, name, _counting(counted, name, getattr(obstore, name)))
    yield counted


def _counting(counted: Counter[str], name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
    def counting(*arguments: Any, **named: Any) -> Any:
        counted[name] += 1
        return ask(*arguments, **named)

    return counting


def file_of(path: str, data: bytes) -> DataFile:
    return DataFile(path, 1, len(data), first=1, last=1, min_diff=1, max_diff=1)


def test_of_two_writers_one_creates(objects: Objects) -> None:
    assert objects.create("log/1", b"mine") is not None
    assert objects.create("log/1", b"another") is None
    assert objects.read("log/1") == b"mine"
    assert objects.create("log/1", b"mine") == objects.tag("log/1")
    with pytest.raises(FileNotFoundError):
        objects.tag("log/2")


@pytest.mark.parametrize("is_done", [True, False], ids=["answer lost", "request lost"])
def test_a_lost_request_or_answer_is_found_out(
    objects: Objects, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    put, left = obstore.put, [1]

    def losing(*arguments: Any, **named: Any) -> Any:
        if not left:
            return put(*arguments, **named)
        left.pop()
        if is_done:
            put(*arguments, **named)
        raise GenericError("nobody answers")

    monkeypatch.setattr(obstore, "put", losing)
    assert objects.create("log/1", b"mine") == objects.tag("log/1")
    left.append(1)
    assert objects.create("log/1", b"another") is None
    assert objects.read("log/1") == b"mine"


def test_a_store_that_never_answers_is_told(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: Any, **__: Any) -> Any:
        raise GenericError("the reason\n\nDebug source:\nmuch more")

    monkeypatch.setattr(obstore, "put", refusing)
    for act in (lambda: objects.create("log/1", b"mine"), lambda: objects.write("log/1", b"mine")):
        with pytest.raises(OSError, match=r"^mem://bucket/log/1: the reason$"):
            act()


def test_a_file_is_fetched_once(objects: Objects, tmp_path: Path, answers: Counter[str]) -> None:
    objects.write("state/collections/m.kept/trace/data/a.parquet", b"rows")
    for _ in range(2):  # the second one is another process
        found = Mirror(ROOT, objects, "state", 1 << 20, f"{tmp_path}/cache")
        for _ in range(2):
            found.fetch(TRACE, [("data/a.parquet", 4)])
        assert Path(found.folder_of(TRACE), "data/a.parquet").read_bytes() == b"rows"
    assert answers["get"] == 1
    assert os.stat(tmp_path / "cache").st_mode & 0o77 == 0, "nobody else may read it"


def test_a_file_of_another_size_is_refused(objects: Objects, tmp_path: Path) -> None:
    objects.write("state/collections/m.kept/trace/data/a.parquet", b"rows")
    found = Mirror(ROOT, objects, "state", 1 << 20, str(tmp_path))
    with pytest.raises(OSError, match="has 4 of its 5 bytes"):
        found.fetch(TRACE, [("data/a.parquet", 5)])
    with pytest.raises(FileNotFoundError):
        found.fetch(TRACE, [("data/b.parquet", 5)])
    assert [name for _, _, names in os.walk(tmp_path) for name in names] == []


def test_a_cut_copy_is_fetched_again(objects: Objects, tmp_path: Path) -> None:
    objects.write("state/collections/m.kept/trace/data/a.parquet", b"rows")
    found = Mirror(ROOT, objects, "state", 1 << 20, str(tmp_path))
    copy = Path(found.new_folder(TRACE), "data/a.parquet")
    copy.parent.mkdir()
    copy.write_bytes(b"ro")
    assert found.fetch(TRACE, [("data/a.parquet", 4)]) == ["data/a.parquet"]
    assert copy.read_bytes() == b"rows"


def test_what_is_written_needs_no_fetching(objects: Objects, tmp_path: Path, answers: Counter[str]) -> None:
    found = Mirror(ROOT, objects, "state", 1 << 20, str(tmp_path))
    Path(found.new_folder(TRACE), "data").mkdir()
    Path(found.new_folder(TRACE), "data/a.parquet").write_bytes(b"rows")
    found.written(TRACE, "data/a.parquet")
    uploads.settle(f"{ROOT}/collections/m.kept")
    assert objects.read("state/collections/m.kept/trace/data/a.parquet") == b"rows"
    assert found.fetch(TRACE, [("data/a.parquet", 4)]) == []
    assert answers == {"put": 1, "get": 1}


def test_a_failed_upload_is_its_commit_s(objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: Any, **__: Any) -> Any:
        raise GenericError("full")

    monkeypatch.setattr(obstore, "put", refusing)
    found = Mirror(ROOT, objects, "state", 1 << 20, str(tmp_path))
    Path(found.new_folder(TRACE), "a.parquet").write_bytes(b"rows")
    found.written(TRACE, "a.parquet")
    uploads.settle(f"{ROOT}/collections/m.kept2")
    with pytest.raises(OSError, match="full"):
        uploads.settle(f"{ROOT}/collections/m.kept")
    uploads.settle(f"{ROOT}/collections/m.kept")


def test_the_least_used_copies_go(objects: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        objects.write(f"state/collections/m.kept/trace/{number}", b"x" * 10)
    for number in range(4):
        found = Mirror(ROOT, objects, "state", 25, str(tmp_path))
        found.fetch(TRACE, [(str(number), 10)])
    folder = Path(found.folder_of(TRACE))
    assert len(list(folder.iterdir())) == 4  # all are in use
    for number in range(4):
        os.utime(folder / str(number), (number, number))
    found.fetch(TRACE, [("4", 10)])
    assert sorted(path.name for path in folder.iterdir()) == ["3", "4"]
    monkeypatch.setattr(mirror, "_IN_USE", -1.0)
    found.fetch(TRACE, [("5", 10)])
    assert sorted(path.name for path in folder.iterdir()) == ["4", "5"]


def test_the_index_of_a_file_s_pages_stays_and_goes_with_it(objects: Objects, tmp_path: Path) -> None:
    """It is not noted as used by itself."""
    for name in ("a", "b", "c"):
        objects.write(f"state/collections/m.kept/trace/{name}.1.parquet", b"x" * 10)
        folder = Path(Mirror(ROOT, objects, "state", 50, str(tmp_path)).new_folder(TRACE))
        (folder / f"{name}.1.parquet.pages").write_bytes(b"x" * 5)
        os.utime(folder / f"{name}.1.parquet.pages", (1, 1))
    found = Mirror(ROOT, objects, "state", 50, str(tmp_path))
    found.fetch(TRACE, [("a.1.parquet", 10), ("b.1.parquet", 10)])
    os.utime(folder / "a.1.parquet", (1, 1))
    Mirror(ROOT, objects, "state", 30, str(tmp_path)).fetch(TRACE, [("c.1.parquet", 10)])
    left = ["b.1.parquet", "b.1.parquet.pages", "c.1.parquet"]
    assert sorted(path.name for path in folder.iterdir()) == left


def test_copies_in_the_store_follow_a_log(
    objects: Objects, monkeypatch: pytest.MonkeyPatch, answers: Counter[str]
) -> None:
    monkeypatch.setattr(copies, "objects_of", lambda uri, options: (objects, uri.removeprefix("mem://bucket/")))
    files = [file_of(f"data/{name}.parquet", b"rows") for name in "abc"]
    for file in files:
        objects.write(f"state/collections/m.kept/trace/{file.path}", b"rows")
    made, live = Copies({}), f"{ROOT}/collections/m.kept/live"
    assert made.link_all(live, TRACE, files[:1]) == 1
    assert made.follow(f"{live}/1", TRACE, files[:2])
    before = answers.copy()
    assert made.follow(f"{live}/1", TRACE, files[:2])
    assert answers == before, "this process knows what is there"
    copies._SEEN.clear()
    assert made.follow(f"{live}/1", TRACE, files[:2])
    assert answers - before == {"list": 1}
    assert not made.follow(f"{live}/1", TRACE, files[1:]), "one goes"
    assert not made.follow(f"{live}/7", TRACE, files[:1]), "it is not there"
    assert made.link_all(live, TRACE, files[1:]) == 2
    made.forget(live, (2,))
    there = objects.below("state/collections/m.kept/live")
    assert {name for name in there if name.endswith("parquet")} == {
        *("1/data-a.parquet", "1/data-b.parquet", "2/data-b.parquet", "2/data-c.parquet")
    }
    monkeypatch.setattr(copies, "STILL_READ", -STILL_READ)
    made.forget(live, (2,))
    assert {name[:2] for name in objects.below("state/collections/m.kept/live")} == {"2/"}


def test_large_outputs_are_not_copied(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "objects_of", lambda uri, options: (objects, uri.removeprefix("mem://bucket/")))
    monkeypatch.setattr(copies, "_MOST_BYTES", 3)
    assert Copies({}).link_all(f"{ROOT}/collections/m.kept/live", TRACE, [file_of("data/a.parquet", b"rows")]) == 0


def test_a_folder_that_cannot_be_made_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("DBT_DD_CACHE", f"{tmp_path}/file/cache")
    monkeypatch.setattr(mirror, "objects_of", lambda uri, options: (Objects(MemoryStore(), "mem://bucket"), "state"))
    assert mirror.mirror_of("mem://bucket/other", (), 1 << 20) is None
    assert "set DBT_DD_CACHE" in caplog.text
