"""What a watch has noted beside collections: when it saw changes of a source, and whether a model's promise is kept.

    <state_root>/collections/<source>/seen.json     changes that some model may lack: [[seen, position], ...]
    <state_root>/collections/<model>/promise.json   {"state": "kept" or "missed", "since": ms}

Notes are hints for people and schedules, and no part of what is stored: one that cannot be read counts as none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from dbt_incremental_dd.core.schedule import Change
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace.layout import CollectionStore

_SEEN, _PROMISE = "seen.json", "promise.json"


@dataclass(frozen=True)
class Promise:
    """The state of a model's promise, and the time (ms) since which it has been so."""

    state: Literal["kept", "missed"]
    since: Time


def seen(place: CollectionStore) -> tuple[Change, ...]:
    """The changes that were seen in a source, oldest first; none if nobody has watched it."""
    text = place.storage.read_small(f"collections/{place.folder}/{_SEEN}")
    try:
        return tuple(Change(int(at), int(position)) for at, position in json.loads(text or "[]"))
    except (ValueError, TypeError):
        return ()


def note_seen(place: CollectionStore, changes: Sequence[Change]) -> None:
    """Replaces the noted changes of a source."""
    place.storage.write_small(f"collections/{place.folder}/{_SEEN}", json.dumps(list(changes)))


def promise(place: CollectionStore) -> Promise | None:
    """What was last noted of a model's promise; None if nobody has watched it."""
    text = place.storage.read_small(f"collections/{place.folder}/{_PROMISE}")
    try:
        found = json.loads(text or "null")
        state: Literal["kept", "missed"] = "missed" if found["state"] == "missed" else "kept"
        return Promise(state, int(found["since"]))
    except (ValueError, TypeError, KeyError):
        return None


def note_promise(place: CollectionStore, found: Promise) -> None:
    """Replaces what is noted of a model's promise."""
    place.storage.write_small(f"collections/{place.folder}/{_PROMISE}", json.dumps(asdict(found)))
