"""What a vacuum leaves of logs: enough to load them, at every version that a commit names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.write import write_arrow

SCHEMA = Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN))


def grown(place: CollectionStore, commits: int) -> Log:
    """A log with a file a commit, and of all but the last ten the file is gone again."""
    log = place.create(SCHEMA)
    for t in range(log.frontiers.upper, log.frontiers.upper + commits):
        table = pa.table({"k": [t], "dd_time": [t], "dd_diff": [1]})
        added = write_arrow(place.storage, place.trace_uri, table, SCHEMA)
        manifest = place.write_manifest(ModelManifest()) if place.name == "m.sums" else t
        log = log.commit(Commit(add=(added,), remove=log.files[:-9], upper=t + 1, manifest=manifest))
    return log


def entries(log: Log) -> list[str]:
    return sorted(path.name for path in Path(log.uri, "_delta_log").iterdir())


def test_logs_do_not_grow_for_ever(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    place = storage.collection("m.sums")
    sizes = []
    for _ in range(3):
        log, inner = grown(place, 70), grown(place.inner("0"), 75)
        named = inner.version - 5
        log = log.commit(Commit(manifest=place.write_manifest(ModelManifest(inner={"0": named}))))
        before = place.inner("0").log_at(named).files
        list(vacuum(storage, older_than=0))
        sizes.append(len(entries(log)))
        loaded = Storage(str(tmp_path) + "/").collection("m.sums")  # as by another process
        assert (loaded.log().files, loaded.log().frontiers) == (log.files, log.frontiers)  # type: ignore[union-attr]
        assert len(list(Path(log.uri, "data").iterdir())) == len(log.files)
        assert loaded.inner("0").log_at(named).files == before
        assert len(entries(inner)) < 70, "an older version is named, from which on entries stay"
    assert max(sizes) < 25


def test_what_is_not_old_stays(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    log = grown(storage.collection("m.sums"), 60)
    before = entries(log)
    list(vacuum(storage, older_than=3_600_000))
    assert set(before) <= set(entries(log))


class _Meanwhile:
    """A file system of a log, where each listing is followed by another thread's commit and checkpoint."""

    def __init__(self, filesystem: Any, place: CollectionStore) -> None:
        self._filesystem = filesystem
        self._place = place
        self.written: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filesystem, name)

    def get_file_info(self, selector: Any) -> Any:
        found = self._filesystem.get_file_info(selector)
        log = self._place.log()
        assert log is not None
        log = log.commit(Commit(upper=log.frontiers.upper + 1))
        log.checkpoint()
        self.written.append(log.version)
        return found


def test_a_checkpoint_that_is_written_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path))
    place = storage.collection("m.sums")
    grown(place, 60)
    plain, logs = Storage.filesystem, _Meanwhile(storage.filesystem(place.uri)[0], place)

    def filesystem(self: Storage, uri: str) -> tuple[Any, str]:
        found, path = plain(self, uri)
        return logs if uri.endswith("_delta_log") else found, path

    monkeypatch.setattr(Storage, "filesystem", filesystem)
    list(vacuum(storage, older_than=-3_600_000))
    log = place.log()
    assert log is not None and logs.written
    assert {f"{version:020d}.checkpoint.parquet" for version in logs.written} <= set(entries(log))
    fresh = Storage(f"{tmp_path}/").collection("m.sums").log()
    assert fresh is not None and fresh.version == log.version
