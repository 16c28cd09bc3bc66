"""How a collection is: its frontiers, its size, what compaction would gain, and what its last change was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dbt_incremental_dd.core.manifest import Manifest, ModelManifest
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.holds import Hold, movable
from dbt_incremental_dd.trace.log import Log, total_rows


@dataclass(frozen=True)
class Reclaimable:
    """What a compaction would merge: ``files`` with ``updates`` that the window lets go, beside the largest of them;
    ``age``: by how many ms ``since`` would move."""

    files: int
    updates: int
    age: int


@dataclass(frozen=True)
class Status:
    """One collection. ``rows`` is None if it is not known; ``change`` is what its last commit of rows did
    (``strategy``, ``input_rows``, ``rows_added``, ``rows_removed``, ``seconds``); ``retain`` in ms."""

    name: str
    kind: str
    since: Time
    upper: Time
    rows: int | None
    updates: int
    files: int
    bytes: int
    retain: int
    reclaimable: Reclaimable
    held_back_by: str
    fallbacks: tuple[str, ...]
    inputs: tuple[str, ...]
    change: Mapping[str, Any]

    @property
    def at(self) -> Time:
        """The latest final time."""
        return self.upper - 1


def status(log: Log, manifest: Manifest | None, held: Sequence[Hold]) -> Status:
    """By its log, its manifest and the holds on it."""
    found = manifest or Manifest()
    retain, model = found.retain_history, found if isinstance(found, ModelManifest) else ModelManifest()
    _, holders = movable(log, retain, held)
    return Status(
        name=log.name,
        kind=found.kind or "?",
        since=log.frontiers.since,
        upper=log.frontiers.upper,
        rows=found.rows,
        updates=total_rows(log.files),
        files=len(log.files),
        bytes=sum(file.bytes for file in log.files),
        retain=retain,
        reclaimable=reclaimable(log, retain, held),
        held_back_by=holders[0].by if holders else "",
        fallbacks=model.fallbacks,
        inputs=tuple(sorted(set(model.inputs.values()))),
        change=asdict(found.change) if found.change is not None else {},
    )


def reclaimable(log: Log, retain: int, held: Sequence[Hold]) -> Reclaimable:
    """What compaction would gain under a window of ``retain`` ms, and under what holds the collection back."""
    since, _ = movable(log, retain, held)
    old = sorted(file.rows for file in between(log.files, BEGINNING, since))
    return Reclaimable(max(len(old) - 1, 0), sum(old[:-1]), since - log.frontiers.since)
