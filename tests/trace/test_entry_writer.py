"""Entries that are written without delta-rs: it reads them as its own, and they come first or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dbt_incremental_dd.core.errors import CommitConflict
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.storage.exclusive import SCRATCH
from dbt_incremental_dd.trace.actions import live_files
from dbt_incremental_dd.trace.commit import MANIFEST, SINCE, UPPER, Commit
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log
from tests.trace.test_entries import built, commit, entry

_OURS = "dbt-incremental-dd:"


def _writer(place: CollectionStore, version: int) -> str:
    lines = [json.loads(line) for line in entry(place, version).read_text().splitlines()]
    return str(next(line["commitInfo"]["engineInfo"] for line in lines if "commitInfo" in line))


def _require_as_delta_rs_reads_it(place: CollectionStore, log: Log) -> None:
    table = DeltaTable(place.trace_uri)
    assert table.version() == log.version
    assert live_files(table, Schema.from_json(table.schema().to_json())) == log.files
    moved = {name: table.transaction_version(name) for name in (UPPER, SINCE, MANIFEST)}
    assert moved == {UPPER: log.frontiers.upper, SINCE: log.frontiers.since, MANIFEST: log.manifest}


def test_delta_rs_reads_what_was_written_without_it(tmp_path: Path) -> None:
    place = built(tmp_path)
    log = place.log()
    assert log is not None
    assert _writer(place, log.version).startswith(_OURS)
    for t in (3, 4):
        log = log.commit(commit(place, t))
        _require_as_delta_rs_reads_it(place, log)
    log = log.commit(Commit(remove=log.files[:2], since=2, changes_data=False))
    _require_as_delta_rs_reads_it(place, log)
    assert len(log.files) == 3
    log = log.commit(Commit())
    _require_as_delta_rs_reads_it(place, log)


def test_checkpoints_come_as_before(tmp_path: Path) -> None:
    place = built(tmp_path, commits=53)
    log = place.log()
    assert log is not None
    folder = Path(place.trace_uri) / "_delta_log"
    assert [path.name for path in folder.glob("*.checkpoint.parquet")] == [f"{49:020d}.checkpoint.parquet"]
    assert not _writer(place, 49).startswith(_OURS)
    assert _writer(place, 50).startswith(_OURS)
    _require_as_delta_rs_reads_it(place, log)


def test_the_second_of_two_writers_of_one_frontier_is_refused(tmp_path: Path) -> None:
    place = built(tmp_path)
    log = place.log()
    assert log is not None
    first = log.commit(commit(place, 5))
    with pytest.raises(CommitConflict):
        log.commit(commit(place, 5))
    _require_as_delta_rs_reads_it(place, first)
    assert not list((Path(place.trace_uri) / "_delta_log").glob(".*"))


def test_a_commit_that_does_not_conflict_comes_after_another_one(tmp_path: Path) -> None:
    place = built(tmp_path)
    log = place.log()
    assert log is not None
    log.commit(Commit(remove=log.files[:1], changes_data=False))
    after = log.commit(commit(place, 5))
    assert after.version == log.version + 2
    assert len(after.files) == 3
    _require_as_delta_rs_reads_it(place, after)


def test_what_a_killed_process_has_not_completed_is_swept(tmp_path: Path) -> None:
    place = built(tmp_path)
    left = Path(place.trace_uri) / "_delta_log" / f".{4:020d}.json-abc{SCRATCH}"
    left.write_text("{")
    log = place.log()
    assert log is not None
    _require_as_delta_rs_reads_it(place, log.commit(commit(place, 3)))
    list(vacuum(place.storage, older_than=0))
    assert not left.exists()
    assert entry(place, log.version + 1).exists()


def test_a_disk_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    place = built(tmp_path)
    log = place.log()
    assert log is not None
    assert not _writer(place, log.version).startswith(_OURS)
    _require_as_delta_rs_reads_it(place, log)
