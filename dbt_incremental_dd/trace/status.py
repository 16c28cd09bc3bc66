"""The status of a collection: its frontiers and size, what compaction would gain, and its last change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dbt_incremental_dd.core.manifest import Manifest, ModelManifest
from dbt_incremental_dd.core.target_lag import TargetLag
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.trace.files import between
from dbt_incremental_dd.trace.holds import Hold, movable
from dbt_incremental_dd.trace.log import Log, total_rows


@dataclass(frozen=True)
class Reclaimable:
    """What compaction would gain. ``files`` and ``updates``: those that would be merged into the largest file at or
    before the new ``since``. ``age``: by how many ms ``since`` would advance."""

    files: int
    updates: int
    age: int


@dataclass(frozen=True)
class Status:
    """One collection. Times and ``retain`` are in ms. ``rows`` is None if unknown. ``change``: its last
    commit of rows (``strategy``, ``input_rows``, ``rows_added``, ``rows_removed``, ``seconds``). ``target_lag``: a
    model's, in ms, or ``"downstream"``. ``adopted``: where a model's first rows come from, and by what they were
    verified; empty if they were computed."""

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
    target_lag: TargetLag | None = None
    adopted: str = ""

    @property
    def at(self) -> Time:
        """The latest final time (ms)."""
        return self.upper - 1


def status(log: Log, manifest: Manifest | None, held: Sequence[Hold]) -> Status:
    """The status, from the log, the manifest and the holds."""
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
        target_lag=model.target_lag,
        adopted=model.adopted.message if model.adopted is not None else "",
    )


def reclaimable(log: Log, retain: int, held: Sequence[Hold]) -> Reclaimable:
    """What compaction would gain under a window of ``retain`` ms, given the holds."""
    since, _ = movable(log, retain, held)
    old = sorted(file.rows for file in between(log.files, BEGINNING, since))
    return Reclaimable(max(len(old) - 1, 0), sum(old[:-1]), since - log.frontiers.since)
