"""A Delta table's log as its protocol has it: actions in one JSON file a version, and checkpoints of all that is live.

Read here and not by delta-rs, which tells nothing of deletion vectors, nor what single commits have done.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from pyarrow import fs as pafs

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:(?:(\d{10})\.(\d{10})|([0-9a-f-]{36}))\.)?(parquet|json)")
_ADD = ("path", "partitionValues", "deletionVector", "size", "stats", "tags")
_ROWS = re.compile(r'"numRecords"\s*:\s*(\d+)')
_SMALLEST_ROW = 20
"""Bytes; for guessing how many rows a file has at most, where the log does not say."""


class VersionGone(Exception):
    """A version is not in the log any more; the message says which."""


@dataclass(frozen=True)
class LoggedFile:
    """A data file as the log has it. ``path``: below the table's folder, or whole. ``vector``: what marks its deleted
    rows; files with the same path and another vector are other rows. ``partition``: its values as text, without those
    that are NULL perhaps; None where the log does not say."""

    path: str
    vector: tuple[tuple[str, Any], ...]
    partition: tuple[tuple[str, str | None], ...] | None
    rows: int


@dataclass(frozen=True)
class Head:
    """What holds for the whole table: the log's latest ``metaData`` and ``protocol``."""

    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    transactions: Mapping[str, int] = field(default_factory=dict)
    """The versions of its applications' transactions."""


class DeltaLog:
    """The log of the table in a folder, as listed when this was made."""

    def __init__(self, filesystem: pafs.FileSystem, folder: str) -> None:
        self._filesystem = filesystem
        self._folder = f"{folder.rstrip('/')}/_delta_log"
        found = filesystem.get_file_info(pafs.FileSelector(self._folder, allow_not_found=True))
        self._names = sorted(info.base_name for info in found if info.type == pafs.FileType.File)
        self._commits = {int(m[1]): name for name in self._names if (m := _COMMIT.fullmatch(name))}
        checkpoints = [int(m[1]) for name in self._names if (m := _CHECKPOINT.fullmatch(name))]
        self.version = max([*self._commits, *checkpoints], default=-1)
        """The latest one; -1 where there is no table."""

    def mark(self, version: int) -> str | None:
        """What tells a version's commit from that of another table in the same place; None where it is gone."""
        name = self._commits.get(version)
        return None if name is None else hashlib.sha256(self._bytes(name)).hexdigest()

    def between(self, after: int, up_to: int) -> Iterator[dict[str, Any]]:
        """The actions of commits, in their order. Raises VersionGone."""
        for version in range(after + 1, up_to + 1):
            if version not in self._commits:
                raise VersionGone(f"its log has no version {version} any more")
            yield from self._actions(self._commits[version])

    def backwards(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """The versions whose entries are there, and their actions, from the latest one on."""
        version = self.version
        while version in self._commits:
            yield version, list(self._actions(self._commits[version]))
            version -= 1

    def from_version(self, version: int) -> list[str]:
        """The log's files, below the table's folder, that reading it from a version on takes."""
        starts = [int(m[1]) for name in self._names if (m := _CHECKPOINT.fullmatch(name)) and int(m[1]) <= version]
        start = max(starts, default=0)
        dated = {name: re.match(r"\d{20}(?=\.)", name) for name in self._names}
        return [f"_delta_log/{name}" for name, m in dated.items() if m is None or int(m[0]) >= start]

    def snapshot(self) -> tuple[Head, list[LoggedFile]]:
        """All that is live at the latest version. Raises VersionGone."""
        head, added = self.live()
        return head, [logged_file(add) for add in added]

    def live(self) -> tuple[Head, list[Mapping[str, Any]]]:
        """The same, with the files' ``add`` actions as they are in the log."""
        metadata: Mapping[str, Any] = {}
        protocol: Mapping[str, Any] = {}
        transactions: dict[str, int] = {}
        found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        start, names = self._checkpoint()
        stored = (action for name in names for action in self._stored(name))
        for action in chain(stored, self.between(start, self.version)):
            metadata, protocol = action.get("metaData") or metadata, action.get("protocol") or protocol
            if txn := action.get("txn"):
                transactions[txn["appId"]] = txn["version"]
            if add := action.get("add"):
                found[_identity(add)] = add
            elif remove := action.get("remove"):
                found.pop(_identity(remove), None)
        return Head(metadata, protocol, transactions), list(found.values())

    def _checkpoint(self) -> tuple[int, list[str]]:
        """The latest whole checkpoint's version, and its files; -1 and none where there is none."""
        parts: dict[int, dict[tuple[str, int], list[str]]] = {}
        for name in self._names:
            if m := _CHECKPOINT.fullmatch(name):
                key = (m[4] or m[3] or "", int(m[3] or 1))
                parts.setdefault(int(m[1]), {}).setdefault(key, []).append(name)
        for version in sorted(parts, reverse=True):
            for (_, wanted), names in parts[version].items():
                if len(names) == wanted:
                    return version, names
        return -1, []

    def _stored(self, name: str) -> Iterator[Mapping[str, Any]]:
        """A checkpoint's actions, with those of its sidecars."""
        rows = self._actions(name) if name.endswith(".json") else self._rows(name)
        for action in rows:
            if action.get("sidecar"):
                yield from self._rows(f"_sidecars/{action['sidecar']['path']}")
            else:
                yield action

    def _rows(self, name: str) -> Iterator[dict[str, Any]]:
        with pq.ParquetFile(f"{self._folder}/{name}", filesystem=self._filesystem) as file:
            present = set(file.schema_arrow.names)
            added = {field.name for field in file.schema_arrow.field("add").type} if "add" in present else set()
            columns = [f"add.{name}" for name in _ADD if name in added]
            columns += [name for name in ("metaData", "protocol", "sidecar", "txn") if name in present]
            for batch in file.iter_batches(columns=columns):
                yield from batch.to_pylist()

    def _actions(self, name: str) -> Iterator[dict[str, Any]]:
        return (json.loads(line) for line in self._bytes(name).splitlines() if line.strip())

    def _bytes(self, name: str) -> bytes:
        with self._filesystem.open_input_stream(f"{self._folder}/{name}") as stream:
            return bytes(stream.read())


def _identity(action: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """What tells the rows that an ``add`` or a ``remove`` names: the file, and what marks its deleted ones."""
    vector = action.get("deletionVector") or {}
    wanted = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
    return unquote(action["path"]), tuple((key, vector.get(key)) for key in wanted) if vector else ()


def logged_file(action: Mapping[str, Any]) -> LoggedFile:
    """The file that an ``add`` or a ``remove`` names."""
    values = action.get("partitionValues")
    path, vector = _identity(action)
    rows = _ROWS.search(action.get("stats") or "")
    return LoggedFile(
        path=path,
        vector=vector,
        partition=None if values is None else tuple(sorted(dict(values).items())),
        rows=int(rows[1]) if rows else int(action.get("size") or 0) // _SMALLEST_ROW + 1,
    )


def net(actions: Iterable[Mapping[str, Any]], heads: Callable[[Mapping[str, Any]], None]) -> dict[LoggedFile, int]:
    """How often each file came (+) or went (-) by actions that change data; ``heads`` gets the other ones.

    What commits without such changes do (compaction, sorting, vectors purged) leaves the sum of all rows as it is.
    """
    counts: dict[tuple[Any, ...], int] = {}
    files: dict[tuple[Any, ...], LoggedFile] = {}
    for action in actions:
        for kind, diff in (("add", 1), ("remove", -1)):
            if kind in action and action[kind].get("dataChange", True):
                file = logged_file(action[kind])
                key = (file.path, file.vector)
                counts[key] = counts.get(key, 0) + diff
                files[key] = file if key not in files or kind == "add" else files[key]
        heads(action)
    return {files[key]: count for key, count in counts.items() if count}
