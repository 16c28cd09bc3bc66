"""Holds: models downstream and other readers that still have to read a collection's history.

``since`` does not advance past the earliest of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyarrow import fs as pafs

from dbt_incremental_dd.core.time import Time, now
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.position import position

_FOLDER = "holds"


@dataclass(frozen=True)
class Hold:
    """``by`` has read everything up to ``at`` (ms), and needs the updates after it."""

    at: Time
    by: str


Holds = Mapping[str, Sequence[Hold]]
"""By the name of the collection that is held."""


def holds(storage: Storage) -> dict[str, tuple[Hold, ...]]:
    """The holds on each collection that has any, the earliest first."""
    found = holds_of_models(storage)
    for place in storage.collections():
        for hold in holds_of_readers(place):
            found.setdefault(place.name, []).append(hold)
    return {name: tuple(sorted(own, key=lambda hold: hold.at)) for name, own in found.items()}


def holds_of_models(storage: Storage) -> dict[str, list[Hold]]:
    """Where each model has read its inputs up to. Reads every collection's log and manifest."""
    found: dict[str, list[Hold]] = {}
    for place in storage.collections():
        log = place.log()
        if log is not None:
            for name, t in position(log, place.read_manifest(log.manifest)).inputs.items():
                found.setdefault(name, []).append(Hold(t, f"model {place.name}"))
    return found


def movable(log: Log, retain: int, held: Sequence[Hold]) -> tuple[Time, tuple[Hold, ...]]:
    """The time to which ``since`` may advance under a window of ``retain`` ms, and the holds that keep it from the
    whole window."""
    wanted = max(log.frontiers.last - retain, log.frontiers.since, 0)
    holders = tuple(sorted((hold for hold in held if hold.at < wanted), key=lambda hold: hold.at))
    return (max(holders[0].at, log.frontiers.since) if holders else wanted), holders


def hold(place: CollectionStore, reader: str, at: Time, by: str, until: Time) -> None:
    """Stores a reader's position; ``until``: when the hold expires unless it is renewed (clock, ms).

    ``reader`` identifies the reader; its former hold is replaced.
    """
    told = json.dumps({"at": at, "by": by, "until": until})
    place.storage.write_small(f"collections/{place.folder}/{_FOLDER}/{reader}.json", told)


def release(place: CollectionStore, reader: str) -> None:
    """Removes a reader's hold."""
    filesystem, path = place.storage.filesystem(f"{place.uri}/{_FOLDER}/{reader}.json")
    if filesystem.get_file_info(path).type == pafs.FileType.File:
        filesystem.delete_file(path)


def held_by(place: CollectionStore, reader: str) -> Hold | None:
    """A reader's hold; None if there is none, or it has expired."""
    return _told(place.storage.read_small(f"collections/{place.folder}/{_FOLDER}/{reader}.json"))


def holds_of_readers(place: CollectionStore) -> list[Hold]:
    """What readers have said that they have still to read of the collection."""
    filesystem, path = place.storage.filesystem(f"{place.uri}/{_FOLDER}")
    found = []
    for info in filesystem.get_file_info(pafs.FileSelector(path, allow_not_found=True)):
        if not info.base_name.endswith(".json") or info.base_name.startswith("."):
            continue
        told = _told(place.storage.read_small(f"collections/{place.folder}/{_FOLDER}/{info.base_name}"))
        found += [told] if told is not None else []
    return found


def _told(text: str | None) -> Hold | None:
    """The stored hold; None if it is missing, expired or malformed."""
    try:
        told = json.loads(text or "")
        return Hold(int(told["at"]), str(told["by"])) if int(told["until"]) > now() else None
    except (ValueError, KeyError, TypeError):
        return None
