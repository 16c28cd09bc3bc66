"""The commits of a trace, from its log's entries (Delta protocol, "Delta Log Entries").

Entries that Delta has removed, by default after 30 days, are missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyarrow import fs as pafs

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace.commit import SINCE, UPPER
from dbt_incremental_dd.trace.layout import CollectionStore

_ENTRY = re.compile(r"\d{20}\.json")


@dataclass(frozen=True)
class Entry:
    """One commit. ``committed``: the clock's time (ms). ``upper`` and ``since`` are None if unchanged. ``updates`` and
    ``bytes``: of the added files. ``files``: the change in their number."""

    version: int
    committed: Time
    upper: Time | None
    since: Time | None
    updates: int
    bytes: int
    files: int


def history(place: CollectionStore, latest: int = 100) -> tuple[Entry, ...]:
    """The last ``latest`` commits, oldest first; none if the collection has never been stored."""
    filesystem, path = place.storage.filesystem(f"{place.trace_uri}/_delta_log")
    found = filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True))
    names = sorted(info.base_name for info in found if _ENTRY.fullmatch(info.base_name))
    return tuple(_entry(name, _actions(filesystem, f"{path}/{name}")) for name in names[-latest:])


def _actions(filesystem: pafs.FileSystem, path: str) -> list[dict[str, Any]]:
    with filesystem.open_input_stream(path) as stream:
        return [json.loads(line) for line in stream.read().splitlines() if line.strip()]


def _entry(name: str, actions: list[dict[str, Any]]) -> Entry:
    moved = {action["appId"]: int(action["version"]) for action in _of(actions, "txn")}
    added = list(_of(actions, "add"))
    return Entry(
        version=int(name.split(".")[0]),
        committed=max((int(info.get("timestamp", 0)) for info in _of(actions, "commitInfo")), default=0),
        upper=moved.get(UPPER),
        since=moved.get(SINCE),
        updates=sum(int(json.loads(action.get("stats") or "{}").get("numRecords", 0)) for action in added),
        bytes=sum(int(action["size"]) for action in added),
        files=len(added) - len(list(_of(actions, "remove"))),
    )


def _of(actions: list[dict[str, Any]], kind: str) -> Iterator[dict[str, Any]]:
    return (action[kind] for action in actions if kind in action)
