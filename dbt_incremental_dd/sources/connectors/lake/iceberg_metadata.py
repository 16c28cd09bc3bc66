"""An Iceberg table's metadata as its specification has it: the data files of a snapshot, and which rows of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from dbt_incremental_dd.lake.avro import read_records
from dbt_incremental_dd.lake.positions import positions, read_vector
from dbt_incremental_dd.sources.connectors.lake.data_files import filesystem_of
from dbt_incremental_dd.sources.connectors.lake.following import FullScanRequired
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyroaring import BitMap64

_DATA, _POSITIONS, _EQUALITY = 0, 1, 2
_DELETED = 2
_PATH_ID = 2147483546
"""The number of the column ``file_path`` in files of position deletes."""


_GZIP = b"\x1f\x8b"
_MOST_KNOWN = 4096
_MANY = 1 << 40


@dataclass(frozen=True)
class File:
    """A live data file."""

    path: str
    rows: int
    sequence: int


@dataclass(frozen=True)
class Deletes:
    """A live file of deleted positions. ``offset``: where a vector is in it; ``low``, ``high``: bounds of the paths of
    the data files that it is about."""

    path: str
    sequence: int
    offset: int | None
    low: str
    high: str | None

    def may_concern(self, file: File) -> bool:
        """Whether it may hold positions of that file."""
        return (
            self.sequence >= file.sequence and self.low <= file.path and (self.high is None or file.path <= self.high)
        )


class Metadata:
    """The table's metadata as of one of its files."""

    def __init__(self, storage: Storage, uri: str) -> None:
        self._storage = storage
        filesystem, path = filesystem_of(storage, uri)
        with filesystem.open_input_stream(path, compression=None) as stream:
            content = bytes(stream.read())
        text = gzip.decompress(content) if content.startswith(_GZIP) else content
        self._json: Mapping[str, Any] = json.loads(text)
        self._snapshots = {int(one["snapshot-id"]): one for one in self._json.get("snapshots") or ()}

    @property
    def uuid(self) -> str:
        """What tells the table from others of its name."""
        return str(self._json.get("table-uuid"))

    @property
    def current(self) -> int | None:
        """The current snapshot; None where there is none yet."""
        found = self._json.get("current-snapshot-id")
        return None if found is None or int(found) == -1 else int(found)

    @cached_property
    def fields(self) -> Sequence[Mapping[str, Any]]:
        """The table's columns."""
        return self._fields(self._json.get("current-schema-id"))

    def fields_at(self, snapshot: int) -> Sequence[Mapping[str, Any]]:
        """The columns as of when a snapshot was made."""
        return self._fields(self._snapshots[snapshot].get("schema-id", self._json.get("current-schema-id")))

    def _fields(self, number: Any) -> Sequence[Mapping[str, Any]]:
        found = {one.get("schema-id"): one for one in self._json.get("schemas") or ()}
        schema: Mapping[str, Any] = found.get(number) or self._json["schema"]
        return list(schema["fields"])

    def rows_of(self, snapshot: int) -> int:
        """How many rows it has, about; many, where it does not say."""
        return int((self._snapshots[snapshot].get("summary") or {}).get("total-records", _MANY))

    def intervals(self, before: int | None, after: int | None) -> list[tuple[int | None, int | None]]:
        """Pairs of snapshots between which rows may have changed: what lies between them says of itself that it only
        replaced files. Raises FullScanRequired where the former snapshot is gone."""
        if before is not None and before not in self._snapshots:
            raise FullScanRequired(f"snapshot {before} has expired")
        steps: list[tuple[int | None, int | None]] = []
        at = after
        while at != before:
            if at is None or at not in self._snapshots:
                return [(before, after)]  # rolled back, or another branch: the two are compared
            found = self._snapshots[at]
            parent = found.get("parent-snapshot-id")
            if (found.get("summary") or {}).get("operation") != "replace":
                if steps and steps[-1][0] == at:
                    steps[-1] = (parent, steps[-1][1])
                else:
                    steps.append((parent, at))
            at = parent
        return steps

    def files(self, snapshot: int | None) -> dict[str, File]:
        """The data files of a snapshot, by path. Raises FullScanRequired."""
        found: dict[str, File] = {}
        for entry in self._entries(snapshot, _DATA):
            file = File(entry["path"], entry["rows"], entry["sequence"])
            if file.path in found:
                raise FullScanRequired(f"data file {file.path} is in it twice")
            if entry["format"] != "PARQUET":
                raise FullScanRequired(f"it has {entry['format']} files")
            found[file.path] = file
        return found

    def deletes(self, snapshot: int | None) -> set[Deletes]:
        """The files of deleted positions of a snapshot. Raises FullScanRequired."""
        found = set()
        for entry in self._entries(snapshot, _POSITIONS):
            if entry["content"] == _EQUALITY:
                raise FullScanRequired("it has rows that are deleted by their values (equality deletes)")
            if entry["format"] not in ("PARQUET", "PUFFIN"):
                raise FullScanRequired(f"it has {entry['format']} files of deleted positions")
            found.add(Deletes(entry["path"], entry["sequence"], entry["offset"], entry["low"], entry["high"]))
        return found

    def _entries(self, snapshot: int | None, content: int) -> list[Mapping[str, Any]]:
        if snapshot is None:
            return []
        uri = self._snapshots[snapshot].get("manifest-list")
        if uri is None:
            raise FullScanRequired(f"snapshot {snapshot} has no list of manifests")
        return [
            entry
            for manifest in _records(self._storage, uri)
            if int(manifest.get("content") or 0) == content
            for entry in self._live(str(manifest["manifest_path"]), int(manifest.get("sequence_number") or 0))
        ]

    def _live(self, uri: str, sequence: int) -> tuple[Mapping[str, Any], ...]:
        """A manifest's live files; kept, since manifests never change."""
        if uri not in _KNOWN:
            found = _live_files(_records(self._storage, uri), sequence)
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            _KNOWN[uri] = found
        return _KNOWN[uri]


_KNOWN: dict[str, tuple[Mapping[str, Any], ...]] = {}


class Positions:
    """The deleted positions that files of deletes hold, each read once."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._found: dict[Deletes, dict[str, BitMap64]] = {}

    def of(self, deletes: Deletes) -> Mapping[str, BitMap64]:
        """By data file."""
        if deletes not in self._found:
            self._found[deletes] = self._read(deletes)
        return self._found[deletes]

    def _read(self, deletes: Deletes) -> dict[str, BitMap64]:
        filesystem, path = filesystem_of(self._storage, deletes.path)
        if deletes.offset is not None:
            return {deletes.low: read_vector(filesystem, path, deletes.offset)}
        table = pq.read_table(path, filesystem=filesystem, columns=["file_path", "pos"], partitioning=None)
        grouped = table.group_by("file_path").aggregate([("pos", "list")])
        return {row["file_path"]: positions(row["pos_list"]) for row in grouped.to_pylist()}


def _live_files(entries: Iterable[Mapping[str, Any]], sequence: int) -> tuple[Mapping[str, Any], ...]:
    """Those of a manifest's entries that are live; ``sequence``: of entries that take the manifest's own."""
    live = []
    for entry in entries:
        if entry["status"] == _DELETED:
            continue
        file = entry["data_file"]
        if file.get("key_metadata"):
            raise FullScanRequired("its files are encrypted")
        own = entry.get("sequence_number")
        referenced = file.get("referenced_data_file")
        live.append(
            {
                "path": file["file_path"],
                "rows": int(file["record_count"]),
                "format": str(file["file_format"]).upper(),
                "content": int(file.get("content") or 0),
                "sequence": sequence if own is None else int(own),
                "offset": file.get("content_offset"),
                "low": referenced or _bound(file, "lower_bounds") or "",
                "high": referenced or _bound(file, "upper_bounds"),
            }
        )
    return tuple(live)


def _bound(file: Mapping[str, Any], which: str) -> str | None:
    """A bound of the paths; one that was cut short is still a bound."""
    found = {item["key"]: item["value"] for item in file.get(which) or ()}.get(_PATH_ID)
    return None if found is None else bytes(found).decode(errors="replace")


def _records(storage: Storage, uri: str) -> list[dict[str, Any]]:
    return read_records(*filesystem_of(storage, uri))
