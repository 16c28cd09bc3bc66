"""What a watch knows of its models' lags: changes that it has seen, and how far each model has been brought."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.manifest import Manifest, ModelManifest
from dbt_incremental_dd.core.schedule import Change, Due, Schedule, ScheduledModel
from dbt_incremental_dd.core.target_lag import DOWNSTREAM
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.freshness import Stored, scheduled
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.watched import note_seen, seen
from dbt_incremental_dd.watch.graph import WatchedModel
from dbt_incremental_dd.watch.project import ModelResult

_RUNS = 5
"""Former runs by whose time the next one's is judged."""


@dataclass
class Lags:
    """Schedules a project's models by their target lags. Models are named by dbt's unique ids, and so are sources. All
    times are in ms; models run one after the other, which is what most projects' threads do.

    A model that has been run contains what was seen before, even if a managed source holds it back: it is not run again
    for that.
    """

    storage: Storage
    models: Mapping[str, WatchedModel]
    sources: Mapping[str, SourceSpec]
    retry: int
    """Milliseconds for which a model that has failed is not run again, unless a source of it has something new."""
    _changes: dict[str, list[Change]] = field(default_factory=dict, init=False)
    _tried: dict[str, Time] = field(default_factory=dict, init=False)
    _held: dict[str, Time] = field(default_factory=dict, init=False)
    _failed: set[str] = field(default_factory=set, init=False)
    _durations: dict[str, deque[int]] = field(default_factory=dict, init=False)
    _overheads: deque[int] = field(default_factory=lambda: deque(maxlen=_RUNS), init=False)
    _last: dict[str, Time] = field(default_factory=dict, init=False)
    _schedule: Schedule = field(default_factory=lambda: Schedule({}), init=False)
    _due_at: Time | None = field(default=BEGINNING, init=False)

    def __post_init__(self) -> None:
        self._changes = {id: list(seen(self.storage.collection(spec.name))) for id, spec in self.sources.items()}
        self.refresh()
        self._promised = {
            source
            for id, above in self._schedule.above.items()
            if isinstance(self.models[id].target, int)
            for source in above & self.sources.keys()
        }

    @property
    def at_once(self) -> list[str]:
        """The models that run as soon as there is something new: those without a target lag, and all above them."""
        return [id for id, lag in self._schedule.lags.items() if lag == 0]

    def refresh(self) -> None:
        """Reads how far each model and source has been brought, by whomever."""
        stored, models = Stored(self.storage), {}
        for id, model in self.models.items():
            found = _found(stored, model.collection) if model.is_stored else None
            known = ScheduledModel(model.inputs, 0, BEGINNING)
            if found is not None and isinstance(found[1], ModelManifest):
                known = replace(scheduled(found[0], found[1]), inputs=model.inputs)
            models[id] = replace(
                known,
                target=0 if model.target is None else model.target,
                up_to=max(known.up_to, self._tried.get(id, BEGINNING)),
                duration=max(self._durations.get(id, ()), default=known.duration),
            )
        for id, spec in self.sources.items():
            found = _found(stored, spec.name)
            self._last[id] = BEGINNING if found is None else found[0].frontiers.last
        self._schedule = Schedule(models, self._changes, overhead=max(self._overheads, default=0))
        self._due_at = BEGINNING

    def note(self, source: str, now: Time, looked: Time) -> None:
        """A source has something new, which was not there at ``looked``, nor when it was last read."""
        managed = self.sources[source].frontier == "managed"
        below = [id for id, above in self._schedule.above.items() if source in above]
        read = max((self._tried.get(id, BEGINNING) for id in below), default=BEGINNING)
        position = max(looked, read + 1, BEGINNING if managed else self._last[source] + 1)
        if not self._held.keys().isdisjoint(below):
            self._held = {id: until for id, until in self._held.items() if id not in below}
            self._due_at = BEGINNING
        up_to = [self._schedule.models[id].up_to for id in below]
        known = [change for change in self._changes[source] if change.position > min(up_to, default=position)]
        if not known or any(known[-1].position <= t for t in up_to):
            known.append(Change(min(position, now), position))
            self._changes[source][:] = known
            self._due_at = BEGINNING
            if source in self._promised and not managed:
                with suppress(OSError, DifferentialError):  # a run fails in the same way, and tells
                    note_seen(self.storage.collection(self.sources[source].name), known)

    def due(self, now: Time) -> Due:
        """What is due. Costs nothing between two times at which something may be."""
        if self._due_at is None or now < self._due_at:
            return Due((), (), self._due_at)
        self._held = {id: until for id, until in self._held.items() if until > now}
        found = self._schedule.due(now, self._held)
        self._due_at = min((t for t in (found.at, *self._held.values()) if t is not None), default=None)
        return found

    def read_by(self, models: Iterable[str]) -> set[str]:
        """The sources above these models."""
        return {source for id in models for source in self._schedule.above[id] if source in self.sources}

    @property
    def failed(self) -> list[str]:
        """The models that have failed in their last run, and all above them."""
        return sorted(self._failed.union(*(self._schedule.above[id] & self.models.keys() for id in self._failed)))

    def ran(
        self,
        models: Iterable[str],
        began: Time,
        seconds: float,
        results: Sequence[ModelResult],
        failed: Set[str],
        *,
        is_usual: bool = True,
    ) -> None:
        """These models have been run, from a time on, by a run of so many seconds; some of them have ``failed``.
        ``is_usual``: further ones will take as long; the first run builds models."""
        done = set(models) - failed
        self._failed = (self._failed - done) | (failed & self.models.keys())
        self._held = {id: until for id, until in self._held.items() if id not in done}
        self._held.update(dict.fromkeys(failed, began + round(seconds * 1000) + self.retry))
        self._tried.update(dict.fromkeys(done, began))
        for one in results:
            model = self.models.get(one.id)
            if model is not None and (not model.is_stored or (is_usual and (one.rows_added or one.rows_removed))):
                self._durations.setdefault(one.id, deque(maxlen=_RUNS)).append(round(one.seconds * 1000))
        if results and is_usual:
            self._overheads.append(round(1000 * max(0.0, seconds - sum(one.seconds for one in results))))
        self.refresh()


def _found(stored: Stored, name: str) -> tuple[Log, Manifest] | None:
    """A collection, unless it is damaged, which its run tells."""
    try:
        return stored.collection(name)
    except DifferentialError:
        return None


def has_target_lags(models: Mapping[str, WatchedModel]) -> bool:
    """Whether a schedule is needed: otherwise all models run as soon as there is something new."""
    return any(model.target is not None for model in models.values())


def promised(models: Mapping[str, WatchedModel]) -> tuple[str, ...]:
    """The collections whose contents are promised not to be further behind than an interval."""
    return tuple(
        sorted(
            model.collection
            for model in models.values()
            if model.is_stored and model.target is not None and model.target != DOWNSTREAM
        )
    )
