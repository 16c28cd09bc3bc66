"""Reading every live file of collections whole: whether the disk still has what was written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.trace.damage import damage, logs_of
from dbt_incremental_dd.trace.layout import CollectionStore, Storage


@dataclass(frozen=True)
class Scrubbed:
    """One collection: its own live files and those of its states and arrangements, and what is wrong, if anything."""

    name: str
    files: int
    bytes: int
    damage: str


def scrub(storage: Storage, names: list[str] | None = None) -> Iterator[Scrubbed]:
    """Checks the named collections, or all. An error in a log or a manifest is damage, too."""
    for place in storage.collections():
        if names is None or place.name in names:
            try:
                yield _scrub(place)
            except StateError as error:
                yield Scrubbed(place.name, 0, 0, error.message)


def _scrub(place: CollectionStore) -> Scrubbed:
    arrangements = (one.log() for one in place.arrangements())
    found = [*logs_of(place), *(log for log in arrangements if log is not None)]
    wrong = next((text for log in found if (text := damage(place.storage, log, contents=True))), "")
    files = [file for log in found for file in log.files]
    return Scrubbed(place.name, len(files), sum(file.bytes for file in files), wrong)
