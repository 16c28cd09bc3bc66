"""How far models are behind their sources, and what must run for their promises, as far as it is stored.

A model lacks the updates of the sources above it that are stamped after the moment that its contents show, and the
changes that a watch has seen after that moment. What has come into a source since then, and has neither been taken in
nor seen, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow.compute as pc

from dbt_incremental_dd.core.manifest import Manifest, ModelManifest, SourceManifest
from dbt_incremental_dd.core.schedule import Change, Schedule, ScheduledModel
from dbt_incremental_dd.core.schema import TIME
from dbt_incremental_dd.core.target_lag import TargetLag
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace.arrow import parquet_dataset
from dbt_incremental_dd.trace.data_folder import data_folder
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.managed_frontier import declared
from dbt_incremental_dd.trace.position import position
from dbt_incremental_dd.trace.watched import promise, seen

_RUNS = 3
"""Former runs by which the duration of the next one is judged."""


@dataclass(frozen=True)
class Freshness:
    """A model's target lag (ms, or ``"downstream"``), and how far its contents are behind.

    ``as_of``: the moment that they show. ``behind_since``: the time of the oldest change that they lack; None if they
    lack none that is known. ``kept_since``: since when the promise has been kept; None if no watch has noted it.
    """

    target_lag: TargetLag
    as_of: Time
    behind_since: Time | None
    kept_since: Time | None = None

    def lag(self, now: Time) -> int:
        """Milliseconds since the oldest change that is lacking; 0 if there is none."""
        return 0 if self.behind_since is None else max(0, now - self.behind_since)

    def missed_since(self, now: Time) -> Time | None:
        """The time since which the promise has been missed; None if it is kept, or if there is none."""
        if isinstance(self.target_lag, str) or self.lag(now) <= self.target_lag:
            return None
        return now - self.lag(now) + self.target_lag


@dataclass(frozen=True)
class Stored:
    """A state root at one moment: each collection's log and manifest is read once."""

    storage: Storage
    _found: dict[str, tuple[Log, Manifest] | None] = field(default_factory=dict)
    _above: dict[str, frozenset[str]] = field(default_factory=dict)

    def collection(self, name: str) -> tuple[Log, Manifest] | None:
        """Its log and manifest; None if it has never been stored."""
        if name not in self._found:
            place = self.storage.collection(name)
            log = place.log()
            manifest = None if log is None else place.read_manifest(log.manifest)
            self._found[name] = None if log is None or manifest is None else (log, manifest)
        return self._found[name]

    def freshness(self, name: str) -> Freshness | None:
        """How far a model is behind; None if it has no target lag."""
        found = self.collection(name)
        if found is None or not isinstance(found[1], ModelManifest) or found[1].target_lag is None:
            return None
        target, as_of = found[1].target_lag, position(*found).as_of
        noted = None if isinstance(target, str) else promise(self.storage.collection(name))
        behind = min((change.seen for change in self._lacked(name, as_of)), default=None)
        return Freshness(target, as_of, behind, noted.since if noted is not None and noted.state == "kept" else None)

    def _lacked(self, name: str, as_of: Time) -> Iterator[Change]:
        for one in self._all_above(name):
            found = self.collection(one)
            if found is None:
                continue
            log, manifest = found
            if isinstance(manifest, ModelManifest):
                if manifest.temporal:  # time itself is a change
                    yield Change(as_of, as_of + 1)
                continue
            stamped = self._first_after(log, as_of)
            if stamped is not None:
                yield Change(stamped, stamped)
            if not _is_managed(manifest):
                yield from (change for change in seen(self.storage.collection(one)) if change.position > as_of)

    def _all_above(self, name: str) -> frozenset[str]:
        """The collections above a model, and itself."""
        if name not in self._above:
            self._above[name] = frozenset({name})  # whoever wrote a circle gets no endless loop
            found = self.collection(name)
            inputs = found[1].inputs.values() if found is not None and isinstance(found[1], ModelManifest) else ()
            self._above[name] = frozenset({name}).union(*map(self._all_above, inputs))
        return self._above[name]

    def _first_after(self, log: Log, t: Time) -> Time | None:
        """The time of the first update after ``t``. Files are read only where merging has put earlier and later times
        into one."""
        files = [file for file in log.files if file.last > t]
        times = [file.first for file in files if file.first > t]
        mixed = [file for file in files if file.first <= t]
        if mixed:
            filesystem, root = data_folder(self.storage, log.uri, mixed)
            for file in mixed:
                dataset = parquet_dataset(f"{root}/{file.path}", filesystem)
                times.append(pc.min(dataset.to_table(columns=[TIME], filter=pc.field(TIME) > t)[TIME]).as_py())
        return min((time for time in times if time is not None), default=None)

    def schedule(self, threads: int = 1) -> Schedule:
        """All stored models. Of a source nothing is known since it was last looked at, so it is taken to have changed
        then; one with a managed frontier, if it has been declared complete beyond that."""
        models: dict[str, ScheduledModel] = {}
        changes: dict[str, tuple[Change, ...]] = {}
        for place in self.storage.collections():
            found = self.collection(place.name)
            if found is None:
                continue
            log, manifest = found
            last = log.frontiers.last
            if isinstance(manifest, ModelManifest):
                models[place.name] = scheduled(log, manifest)
            elif not _is_managed(manifest) or (declared(place) or 0) > last:
                changes[place.name] = (Change(last, last + 1),)
        return Schedule(models, changes, threads)


def scheduled(log: Log, manifest: ModelManifest) -> ScheduledModel:
    """A stored model, for a schedule. Without a target lag it runs as soon as there is something new."""
    as_of = position(log, manifest).as_of
    target = 0 if manifest.target_lag is None else manifest.target_lag
    return ScheduledModel(tuple(manifest.inputs.values()), target, as_of, duration(manifest), manifest.temporal)


def duration(manifest: ModelManifest) -> int:
    """Milliseconds that a run takes, by the longest of the last ones; builds count only if there was nothing else."""
    usual = [run.seconds for run in manifest.runs if run.kind != "build"] or [run.seconds for run in manifest.runs]
    return round(1000 * max(usual[-_RUNS:], default=0.0))


def _is_managed(manifest: Manifest) -> bool:
    return isinstance(manifest, SourceManifest) and manifest.frontier == "managed"
