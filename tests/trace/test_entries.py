"""Log entries that a power cut took, or damaged: the log is refused, and never taken for an older one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.manifest import Manifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.storage import durable
from dbt_incremental_dd.trace import log as logs
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.write import write_arrow

SCHEMA = Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN))


def built(folder: Path, commits: int = 3) -> CollectionStore:
    """A collection with a row of each time."""
    place = Storage(str(folder)).collection("m.x")
    log = place.create(SCHEMA)
    for t in range(commits):
        log = log.commit(commit(place, t))
    return place


def commit(place: CollectionStore, t: int) -> Commit:
    """One row more."""
    table = pa.table([pa.array([n], pa.int64()) for n in (t, t, 1)], SCHEMA.names)
    file = write_arrow(place.storage, place.trace_uri, table, SCHEMA)
    return Commit(add=(file,), upper=t + 1, manifest=place.write_manifest(Manifest(unknown={"t": t})))


def entry(place: CollectionStore, version: int) -> Path:
    """A log entry."""
    return Path(f"{place.trace_uri}/_delta_log/{version:020d}.json")


def keep_lines(count: int) -> Callable[[Path], None]:
    """Its first lines, whole."""
    return lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[:count]))


DAMAGE: dict[str, tuple[int, Callable[[Path], None]]] = {
    "the newest is gone": (3, Path.unlink),
    "the newest is empty": (3, lambda path: path.write_bytes(b"") and None),
    "the newest was cut inside a line": (3, lambda path: path.write_bytes(path.read_bytes()[:-9]) and None),
    "the newest was cut after a line": (3, keep_lines(2)),
    "the newest lacks its last line": (3, keep_lines(3)),
    "an earlier one is empty": (2, lambda path: path.write_bytes(b"") and None),
    "an earlier one is gone": (2, Path.unlink),
}


@pytest.mark.parametrize("process", ["the same", "another"])
@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_log_is_refused(tmp_path: Path, case: str, process: str) -> None:
    place = built(tmp_path)
    version, damage = DAMAGE[case]
    damage(entry(place, version))
    if process == "another":
        logs.KNOWN.clear()
    elif version < 3:
        return  # what was read is the log
    with pytest.raises(StateError, match=r"m\.x") as caught:
        place.log()
    assert "full-refresh" in caught.value.remedy


def test_all_entries_gone_is_no_new_collection(tmp_path: Path) -> None:
    place = built(tmp_path)
    for version in range(4):
        entry(place, version).unlink()
    with pytest.raises(StateError, match="has lost its newest entries"):
        place.log()


def test_both_times_are_named(tmp_path: Path) -> None:
    place = built(tmp_path)
    entry(place, 3).unlink()
    with pytest.raises(StateError, match=r"final at 1970-01-01 00:00:00\.001, and has been .*00:00:00\.002"):
        place.log()


def test_an_older_version_that_is_empty_is_refused(tmp_path: Path) -> None:
    place = built(tmp_path)
    entry(place, 2).write_bytes(b"")
    with pytest.raises(StateError, match="entry 2"):
        place.log_at(2)


@pytest.mark.parametrize("action", [Commit(), Commit(upper=99), Commit(replace_all=True, upper=3, schema=SCHEMA)])
def test_what_is_whole_is_taken(tmp_path: Path, action: Commit) -> None:
    """Merged files, frontiers alone, new columns, checkpoints; a run that was killed before it left its mark."""
    place = built(tmp_path, 60)
    log = place.log()
    assert log is not None
    merged = Commit(add=commit(place, 60).add, remove=log.files[:2], changes_data=False)
    log = log.commit(merged).commit(Commit(schema=Schema((*SCHEMA, Column("j", LONG))))).commit(action)
    logs.KNOWN.clear()
    found = place.log()
    assert found is not None and found.version == log.version
    Path(f"{place.trace_uri}/newest").write_text("")
    logs.KNOWN.clear()
    assert place.log() is not None


def test_all_is_synced_before_the_commit_and_the_entry_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = built(tmp_path, 1)
    log = place.log()
    assert log is not None
    synced: list[str] = []
    monkeypatch.setattr(durable, "_linked", set())
    monkeypatch.setattr(durable, "sync_file", lambda path: synced.append(str(path)))
    monkeypatch.setattr(durable, "sync_folder", lambda path: synced.append(str(path)))
    made = commit(place, 1)
    monkeypatch.setattr(logs, "reached", lambda point: synced.append(point))
    log.commit(made)
    before, after = synced[: synced.index("commit: before")], synced[synced.index("commit: done") :]
    trace, own = Path(place.trace_uri), Path(place.uri)
    assert {str(trace / made.add[0].path), str(own / "manifests" / f"{made.manifest}.json")} <= set(before)
    assert {str(trace / "data"), str(trace), str(own / "manifests"), str(own), str(tmp_path)} <= set(before)
    assert before.index(str(trace / made.add[0].path)) < before.index(str(trace / "data"))
    assert after.index(str(entry(place, 2))) < after.index(str(trace / "_delta_log"))


def test_an_inner_trace_is_synced_with_its_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = built(tmp_path, 1)
    synced: list[str] = []
    monkeypatch.setattr(durable, "sync_file", lambda path: synced.append(str(path)))
    inner = place.inner("node")
    state = inner.create(SCHEMA).commit(commit(inner, 1))
    assert not synced
    log = place.log()
    assert log is not None
    log.commit(Commit(upper=5))
    assert str(entry(inner, state.version)) in synced
    assert f"{inner.trace_uri}/{state.files[0].path}" in synced


def test_a_disk_that_cannot_sync_fails_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = built(tmp_path, 1)
    log = place.log()
    assert log is not None
    made = commit(place, 1)

    def fail(path: str) -> None:
        raise OSError(5, "Input/output error", path)

    with monkeypatch.context() as patch:
        patch.setattr(durable, "sync_file", fail)
        with pytest.raises(StateError, match="cannot be written to the disk"):
            log.commit(made)
    found = place.log()
    assert found is not None and found.version == log.version
    assert log.commit(made).version == log.version + 1
