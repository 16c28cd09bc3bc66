"""Manifests: which data files a snapshot has, and which files of deleted positions. One that has nothing of a change
serves the next snapshot as well, so that a commit writes what has changed.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_incremental_dd.lake.avro import records_as_file
from dbt_incremental_dd.open_table.iceberg.avro_schemas import ENTRY, MANIFEST

DATA, DELETES = 0, 1
"""What a manifest has: data files, or files of deleted positions."""
_EXISTING, _ADDED, _DELETED = 0, 1, 2
_FULL = 500
"""Files in a manifest; one of which a file goes is written anew."""
_SMALL = 8
"""Manifests that are not half full, before they become one."""

Entry = Mapping[str, Any]
"""A file as its manifest has it: ``snapshot_id`` and ``sequence_number`` of when it came, and the ``data_file``."""


@dataclass(frozen=True, eq=False)
class Manifest:
    """Never changes. ``listed``: its record in the list of manifests. ``entries``: its live files, by their paths."""

    listed: Mapping[str, Any]
    entries: Mapping[str, Entry]

    @property
    def content(self) -> int:
        """DATA or DELETES."""
        return int(self.listed["content"])


@dataclass(frozen=True)
class Commit:
    """What tells the commit from others. ``notes``: what each manifest's head says of the table."""

    uri: str
    snapshot: int
    sequence: int
    notes: Mapping[str, str]

    def entry(self, data_file: Mapping[str, Any]) -> Entry:
        """A file that comes by it."""
        sequence = {"sequence_number": self.sequence, "file_sequence_number": self.sequence}
        return {"snapshot_id": self.snapshot, **sequence, "data_file": data_file}


def live_entries(records: Iterable[Mapping[str, Any]], listed: Mapping[str, Any]) -> dict[str, Entry]:
    """A manifest's live files, by their paths. What a record leaves out is as the list of manifests says."""
    found: dict[str, Entry] = {}
    for record in records:
        if record["status"] == _DELETED:
            continue
        sequence = record.get("sequence_number")
        sequence = listed["sequence_number"] if sequence is None else sequence
        snapshot = record.get("snapshot_id")
        found[str(record["data_file"]["file_path"])] = {
            "snapshot_id": listed["added_snapshot_id"] if snapshot is None else snapshot,
            "sequence_number": sequence,
            "file_sequence_number": record.get("file_sequence_number") or sequence,
            "data_file": record["data_file"],
        }
    return found


def changed(
    commit: Commit, before: Iterable[Manifest], content: int, came: Sequence[Mapping[str, Any]], went: Collection[str]
) -> tuple[list[Manifest], dict[str, bytes]]:
    """The manifests of this content after a change, and those of them that are new as files, by their paths. ``came``:
    files; ``went``: paths."""
    own = [manifest for manifest in before if manifest.content == content and manifest.entries]
    touched = [manifest for manifest in own if not manifest.entries.keys().isdisjoint(went)]
    kept = [manifest for manifest in own if manifest not in touched]
    small = [manifest for manifest in kept if len(manifest.entries) < _FULL // 2]
    if len(small) >= _SMALL:
        touched, kept = [*touched, *small], [manifest for manifest in kept if manifest not in small]
    entries = [(_ADDED, commit.entry(file)) for file in came]
    for manifest in touched:
        for path, entry in manifest.entries.items():
            entries.append((_EXISTING, entry) if path not in went else (_DELETED, _deleted(entry, commit)))
    made = dict(_written(commit, content, entries[at : at + _FULL]) for at in range(0, len(entries), _FULL))
    return [*kept, *made], {str(manifest.listed["manifest_path"]): data for manifest, data in made.items()}


def _deleted(entry: Entry, commit: Commit) -> Entry:
    """As the manifest says that the file goes by this commit."""
    return {**entry, "snapshot_id": commit.snapshot}


def _written(commit: Commit, content: int, entries: Sequence[tuple[int, Entry]]) -> tuple[Manifest, bytes]:
    notes = {**commit.notes, "content": "deletes" if content == DELETES else "data"}
    data = records_as_file(ENTRY, [{"status": status, **entry} for status, entry in entries], notes)
    live = {str(entry["data_file"]["file_path"]): entry for status, entry in entries if status != _DELETED}
    listed = {
        "manifest_path": f"{commit.uri}/metadata/{uuid.uuid4()}-m{content}.avro",
        "manifest_length": len(data),
        "partition_spec_id": 0,
        "content": content,
        "sequence_number": commit.sequence,
        "min_sequence_number": min((entry["sequence_number"] for entry in live.values()), default=commit.sequence),
        "added_snapshot_id": commit.snapshot,
        **dict(_counts(entries)),
    }
    return Manifest(listed, live), data


def _counts(entries: Sequence[tuple[int, Entry]]) -> Iterator[tuple[str, int]]:
    for status, name in ((_ADDED, "added"), (_EXISTING, "existing"), (_DELETED, "deleted")):
        rows = [int(entry["data_file"]["record_count"]) for had, entry in entries if had == status]
        yield f"{name}_files_count", len(rows)
        yield f"{name}_rows_count", sum(rows)


def list_as_file(commit: Commit, parent: int | None, manifests: Iterable[Manifest]) -> bytes:
    """The list of a snapshot's manifests."""
    notes = {
        "snapshot-id": str(commit.snapshot),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "sequence-number": str(commit.sequence),
        "format-version": "2",
    }
    return records_as_file(MANIFEST, [manifest.listed for manifest in manifests], notes)
