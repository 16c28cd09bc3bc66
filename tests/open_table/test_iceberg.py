"""Iceberg tables: what a commit writes, what others do with them, and what is kept."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from dbt_incremental_dd.core.errors import ConfigError, StateError
from dbt_incremental_dd.open_table.iceberg import iceberg, metadata_files
from dbt_incremental_dd.open_table.iceberg.iceberg import IcebergFormat
from dbt_incremental_dd.open_table.iceberg.manifests import DATA, Commit, Manifest, changed
from tests.open_table.test_random import Rounds
from tests.open_table.written import Written

Row = tuple[Any, ...]


def row(number: int) -> Row:
    return number, f"n{number}", Decimal("1.50"), number / 4, None


def written(folder: Path, count: int = 30) -> Written:
    """A table of numbered rows at the time 1,000."""
    made = Written(folder, "iceberg")
    made.commit([(row(number), 1) for number in range(count)], 1_000)
    made.show()
    return made


def step(made: Written, come: range = range(0), go: range = range(0)) -> str:
    """Rows of these numbers come and go; why the table was written anew, if it was."""
    made.commit([*((row(number), 1) for number in come), *((row(number), -1) for number in go)], made.time + 10)
    why = made.show().why
    assert made.shown() == made.as_of(made.time)
    return why


def last(made: Written) -> dict[str, Any]:
    """The table's metadata."""
    number = metadata_files.newest(made.storage, made.uri)
    return dict(metadata_files.read(made.storage, made.uri, number))


def another(made: Written, **changes: Any) -> None:
    """Somebody else commits other metadata."""
    path = Path(made.uri, metadata_files.metadata_path(metadata_files.newest(made.storage, made.uri) + 1))
    path.write_text(json.dumps({**last(made), **changes}))


def files(made: Written, pattern: str) -> dict[Path, int]:
    return {path: path.stat().st_size for path in Path(made.uri).glob(pattern)}


def test_a_commit_writes_what_has_changed(tmp_path: Path) -> None:
    made = written(tmp_path, 25_000)
    for number in range(6):
        step(made, come=range(70_000 + number, 70_001 + number))
    (snapshot,) = [one for one in StaticTable.from_metadata(made.uri).snapshots() if one.sequence_number == 7]
    before = files(made, "*/*")
    step(made, come=range(80_000, 80_010), go=range(100, 25_000, 2_000))
    new = {path: size for path, size in files(made, "*/*").items() if path not in before}
    assert sum(new.values()) < 25_000
    kinds = Counter(path.name.rpartition("-")[2] if path.suffix != ".json" else "json" for path in new)
    assert kinds["m0.avro"] == kinds["m1.avro"] == kinds["deletes.parquet"] == kinds["json"] == 1
    table = StaticTable.from_metadata(made.uri)
    now = table.current_snapshot()
    assert now is not None and now.parent_snapshot_id == snapshot.snapshot_id
    assert len(now.manifests(table.io)) == len(snapshot.manifests(table.io)) + 2, "the others are as they were"
    step(made, go=range(101, 25_000, 2_000))
    deletes = StaticTable.from_metadata(made.uri).inspect.delete_files()
    assert deletes["record_count"].to_pylist() == [26], "one for the file, with all positions"


def test_manifests_are_merged() -> None:
    """Files that come one by one are in few manifests, each of them once."""
    manifests: list[Manifest] = []
    for number in range(1, 1_501):
        commit = Commit("/t", snapshot=number, sequence=number, notes={})
        file = {"content": 0, "file_path": f"/t/{number}", "file_format": "PARQUET", "partition": {}}
        came = [{**file, "record_count": 1, "file_size_in_bytes": 1}]
        went = {f"/t/{number - 700}"} if number % 100 == 0 else set()
        manifests, _ = changed(commit, manifests, DATA, came, went)
        assert len(manifests) < 14
    found = [entry for manifest in manifests for entry in manifest.entries.values()]
    assert len(found) == len({entry["data_file"]["file_path"] for entry in found}) == 1_500 - 8
    assert all(entry["data_file"]["file_path"] == f"/t/{entry['snapshot_id']}" for entry in found)


def test_what_snapshots_say(tmp_path: Path) -> None:
    made = written(tmp_path)
    step(made, come=range(30, 32))
    step(made, come=range(40, 41), go=range(2))
    step(made, go=range(40, 41))
    said = [one.summary for one in StaticTable.from_metadata(made.uri).snapshots()]
    assert [one.operation.value for one in said if one is not None][1:] == ["append", "overwrite", "delete"]
    totals = [(one["total-records"], one["total-position-deletes"]) for one in said if one is not None]
    assert totals == [("30", "0"), ("32", "0"), ("33", "2"), ("32", "2")]
    assert [one["timestamp-ms"] for one in last(made)["snapshots"]] == [1_000, 1_010, 1_020, 1_030]


def test_rows_are_found_by_bounds(tmp_path: Path) -> None:
    """Readers leave out files by what manifests say of them."""
    made = written(tmp_path)
    step(made, come=range(100, 110))
    table = StaticTable.from_metadata(made.uri)
    for condition, count in (("id > 50", 1), ("id > 200", 0), ("id >= 29", 2), ("amount > 1", 2)):
        assert len(list(table.scan(row_filter=condition).plan_files())) == count, condition
    assert table.scan(row_filter="id > 104").to_arrow().num_rows == 5


def test_former_snapshots_go(tmp_path: Path) -> None:
    """Those before ``since``, and the files that they alone have; and with them none that is needed."""
    made = Written(tmp_path, "iceberg")
    rounds = Rounds(made, 5)
    for t in range(1_000, 1_030):
        rounds.step(t)
    needed = IcebergFormat().needed(made.storage, made.uri, 1_020)
    assert needed is not None
    for folder, _, names in os.walk(made.uri):
        for path in (os.path.join(folder, name) for name in names):
            if os.path.relpath(path, made.uri) not in needed:
                os.unlink(path)
    for t in range(1_020, 1_030):
        assert made.shown(rounds.versions[t]) == made.as_of(t), t
    kept = {one["sequence-number"] for one in last(made)["snapshots"]}
    assert rounds.versions[1_020] in kept and rounds.versions[1_010] not in kept
    rounds.step(1_030)
    assert made.shown() == made.as_of(1_030)
    assert IcebergFormat().needed(made.storage, f"{tmp_path}/none", 0) is None


def test_snapshots_expire_and_files_of_metadata_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.open_table.written.RETAINED", 30)
    monkeypatch.setattr(metadata_files, "_KEPT", 3)
    made = written(tmp_path)
    for number in range(8):
        step(made, come=range(30 + number, 31 + number))
    assert [one["timestamp-ms"] for one in last(made)["snapshots"]] == [1_050, 1_060, 1_070, 1_080]
    assert len(files(made, "metadata/v*.metadata.json")) == 3
    tagged = {**last(made)["refs"], "old": {"type": "tag", "snapshot-id": last(made)["snapshots"][0]["snapshot-id"]}}
    another(made, refs=tagged)
    for number in range(8):
        assert not step(made, go=range(number, number + 1))
    assert last(made)["snapshots"][0]["timestamp-ms"] == 1_050


def _unknown(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot of others, as after a compaction or a DELETE."""
    summary = {"operation": "overwrite"}
    one = {**metadata["snapshots"][-1], "snapshot-id": 7, "sequence-number": 99, "timestamp-ms": 5_000}
    log = [*metadata["snapshot-log"], {"snapshot-id": 7, "timestamp-ms": 5_000}]
    snapshots = [*metadata["snapshots"], {**one, "summary": summary}]
    return {"snapshots": snapshots, "current-snapshot-id": 7, "snapshot-log": log, "last-sequence-number": 99}


def _rolled_back(metadata: Mapping[str, Any]) -> dict[str, Any]:
    number = metadata["snapshots"][0]["snapshot-id"]
    log = [*metadata["snapshot-log"], {"snapshot-id": number, "timestamp-ms": 5_000}]
    main = {"main": {"snapshot-id": number, "type": "branch"}}
    return {"current-snapshot-id": number, "snapshot-log": log, "last-updated-ms": 5_000, "refs": main}


def _one_column_more(metadata: Mapping[str, Any]) -> dict[str, Any]:
    (schema,) = metadata["schemas"]
    more = {"id": 9, "name": "more", "required": False, "type": "int"}
    schemas = [schema, {**schema, "schema-id": 1, "fields": [*schema["fields"], more]}]
    return {"schemas": schemas, "current-schema-id": 1, "last-column-id": 9}


def _one_column_renamed(metadata: Mapping[str, Any]) -> dict[str, Any]:
    (schema,) = metadata["schemas"]
    fields = [{**field, "name": "x"} if field["name"] == "name" else field for field in schema["fields"]]
    return {"schemas": [schema, {**schema, "schema-id": 1, "fields": fields}], "current-schema-id": 1}


def _expired(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"snapshots": metadata["snapshots"][-1:], "snapshot-log": metadata["snapshot-log"][-1:]}


def _elsewhere(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"location": "/somewhere/else"}


def _version_3(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"format-version": 3, "next-row-id": 0}


def _no_snapshot(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"current-snapshot-id": None, "snapshots": [], "snapshot-log": [], "refs": {}}


@pytest.mark.parametrize(
    ("change", "is_anew"),
    [
        (_unknown, True),
        (_rolled_back, False),
        (_one_column_more, True),
        (_one_column_renamed, True),
        (_expired, False),
        (_elsewhere, True),
        (_version_3, True),
        (_no_snapshot, True),
    ],
)
def test_what_others_do(tmp_path: Path, change: Callable[[Mapping[str, Any]], dict[str, Any]], is_anew: bool) -> None:
    made = written(tmp_path)
    step(made, come=range(30, 35), go=range(1))
    another(made, **change(last(made)))
    assert bool(step(made, come=range(40, 41), go=range(1, 3))) == is_anew
    assert not step(made, come=range(50, 51), go=range(3, 4))
    times = [entry["timestamp-ms"] for entry in last(made)["snapshot-log"]]
    assert times == sorted(times)


def test_metadata_that_others_compress(tmp_path: Path) -> None:
    made = written(tmp_path)
    path = Path(made.uri, "metadata", "v2.gz.metadata.json")
    path.write_bytes(gzip.compress(json.dumps({**last(made), **_unknown(last(made))}).encode()))
    made.commit([(row(100), 1)], 2_000)
    assert made.show().why == "somebody else has changed it"
    assert made.shown() == made.as_of(2_000)


def test_a_hint_that_is_wrong(tmp_path: Path) -> None:
    made = written(tmp_path)
    step(made, come=range(40, 41))
    for hint in ("1", "9", "", "x"):
        Path(made.uri, metadata_files.HINT).write_text(hint)
        iceberg.WRITTEN.clear()  # as in another process
        version = IcebergFormat().load(made.storage, made.uri)
        assert version is not None and version.number == 2
        assert Path(made.uri, metadata_files.HINT).read_text() == "2"


def test_a_former_version_is_made_up_for(tmp_path: Path) -> None:
    """As after a restore of the table alone."""
    made = written(tmp_path)
    step(made, come=range(40, 41), go=range(2))
    Path(made.uri, metadata_files.metadata_path(2)).unlink()
    assert not step(made, go=range(2, 3))
    assert len(last(made)["snapshots"]) == 2


@pytest.mark.parametrize("pattern", ["metadata/*-m0.avro", "metadata/snap-*", "metadata/v1.metadata.json"])
def test_what_is_lost_or_damaged(tmp_path: Path, pattern: str) -> None:
    made = written(tmp_path)
    iceberg.WRITTEN.clear()  # as in another process
    made.commit([(row(1), -1)], 2_000)
    (path,) = Path(made.uri).glob(pattern)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StateError, match=r"the table of m\.t at .* cannot be read"):
        made.show()


def test_files_elsewhere_are_not_followed(tmp_path: Path) -> None:
    """Anybody who can write to the state root may have written the metadata."""
    made = written(tmp_path)
    (snapshot,) = last(made)["snapshots"]
    for path in ("/etc/passwd", f"{made.uri}/metadata/../../x.avro"):
        another(made, snapshots=[{**snapshot, "manifest-list": path}])
        made.commit([(row(1), -1)], made.time + 10)
        with pytest.raises(StateError, match=r"cannot be read: .*(/etc/passwd|x\.avro)"):
            made.show()


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Written(tmp_path, "iceberg")
    made.commit([(row(1), 1)], 1_000)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ConfigError, match="fastavro is not installed") as raised:
        made.show()
    assert "dbt-incremental-dd[lake]" in str(raised.value)
    monkeypatch.undo()
    made.show()
    assert made.shown() == made.as_of(1_000)
