"""What must run when, so that every model is no further behind its sources than its target lag allows.

No I/O, and no clock of its own: the time is an argument. All times and durations are in ms.

A model *lacks* a change of a source above it until it has been brought up to the change's ``position``. A model with
a target lag must have run by its *deadline*: the time of the oldest change that it lacks, plus the lag. It is *due* a
reserve before that. The reserve is the time of one run of everything, twice: a run that has just begun may be in the
way, and others may be due at the same time. It is at most half the target lag, but at least the model's own time.
Runs take place one after the other, and what is due at once is one run. So every promise is kept if a run of
everything takes at most a quarter of each target lag.

Nothing runs before it is due, and models above a due one run with it only if they lack its oldest missing change: their
own lag is thereby the tightest of all below them. Two runs of a model over sources alone are at least half of that lag
apart, or the lag minus the model's own time. A model above a due one that has nothing new is run with it, too, if it
has not been brought that far: a model shows only times up to which all its inputs are final.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from dbt_incremental_dd.core.target_lag import DOWNSTREAM, TargetLag
from dbt_incremental_dd.core.time import Time


class Change(NamedTuple):
    """Something new in a source. ``seen``: the clock's time from which it counts. ``position``: models that have been
    brought up to this time contain it."""

    seen: Time
    position: Time


@dataclass(frozen=True)
class ScheduledModel:
    """``inputs``: names of models and sources. ``target``: 0 is as soon as there is something new in a source.
    ``up_to``: all changes up to this position are contained. ``temporal``: it changes as time passes. ``duration``: of
    a run."""

    inputs: tuple[str, ...]
    target: TargetLag
    up_to: Time
    duration: int = 0
    temporal: bool = False


class Due(NamedTuple):
    """``models``: to be run, each after those above it; empty if nothing is due. ``asked``: those of them for whose
    promise they are run. ``at``: the time at which something is due; None if no model lacks anything."""

    models: tuple[str, ...]
    asked: tuple[str, ...]
    at: Time | None


@dataclass(frozen=True)
class Schedule:
    """``models``: by name. ``changes``: of each source, those that some model may lack, by position. ``threads``:
    models that run at the same time. ``overhead``: of each run, beside its models."""

    models: Mapping[str, ScheduledModel]
    changes: Mapping[str, Sequence[Change]] = field(default_factory=dict)
    threads: int = 1
    overhead: int = 0

    @cached_property
    def order(self) -> tuple[str, ...]:
        """All models, each after those above it."""
        found: dict[str, None] = {}
        for name in sorted(self.models):
            self._visit(name, found)
        return tuple(found)

    def _visit(self, name: str, found: dict[str, None]) -> None:
        pending = [(name, iter(self._models_in(name)))]
        while pending:
            here, inputs = pending[-1]
            following = next((one for one in inputs if one not in found), None)
            if following is None:
                pending.pop()
                found[here] = None
            else:
                pending.append((following, iter(self._models_in(following))))

    def _models_in(self, name: str) -> list[str]:
        return [one for one in self.models[name].inputs if one in self.models]

    @cached_property
    def above(self) -> Mapping[str, frozenset[str]]:
        """The models and sources above each model."""
        found: dict[str, frozenset[str]] = {}
        for name in self.order:
            inputs = self.models[name].inputs
            found[name] = frozenset(inputs).union(*(found.get(one, frozenset()) for one in inputs))
        return found

    @cached_property
    def lags(self) -> Mapping[str, int | None]:
        """Each model's effective lag: the tightest of its own, and of those below it. None if nobody needs it."""
        found: dict[str, int | None] = {}
        for name in reversed(self.order):
            own = self.models[name].target
            below = found.get(name)
            found[name] = below if own == DOWNSTREAM else _least(below, int(own))
            for one in self._models_in(name):
                found[one] = _least(found.get(one), found[name])
        return found

    def missing(self, name: str) -> Change | None:
        """The oldest change of the sources above the model that it lacks. Where it or a model above changes as time
        passes, the time itself is a change, but for what runs at once."""
        model, above = self.models[name], self.above[name]
        lacked: list[Change] = []
        for source in above & self.changes.keys():
            changes = self.changes[source]
            lacked += changes[(i := bisect_right(changes, model.up_to, key=_position)) : i + 1]
        if model.target != 0 and not self._temporal.isdisjoint((name, *above)):
            lacked.append(Change(model.up_to, model.up_to + 1))
        if not lacked:
            return None
        return Change(min(change.seen for change in lacked), min(change.position for change in lacked))

    def due(self, now: Time, held: Collection[str] = ()) -> Due:
        """What is due. ``held``: models that are not to be run yet, and so none that needs them."""
        at: list[Time] = []
        asked: list[str] = []
        wanted: set[str] = set()
        for name in self.order:
            missing = self.missing(name)
            due_at = None if missing is None else self._due_at(name, missing)
            if missing is None or due_at is None:
                continue
            models = self._needed(name, missing) if due_at <= now or held else set()
            if not models.isdisjoint(held):
                continue
            at.append(due_at)
            if due_at <= now:
                asked.append(name)
                wanted |= models
        return Due(tuple(one for one in self.order if one in wanted), tuple(asked), min(at, default=None))

    def _needed(self, name: str, missing: Change) -> set[str]:
        """The model, and those above it that lack what it lacks."""
        above = (one for one in self.above[name] if one in self.models)
        return {name, *(one for one in above if self.models[one].up_to < missing.position)}

    def _due_at(self, name: str, missing: Change) -> Time | None:
        """The time from which the model is due; None if nothing is promised."""
        target = self.models[name].target
        if isinstance(target, str):
            return None
        reserve = min(2 * self._everything, target // 2)
        if target and reserve < self._everything:
            reserve = min(max(reserve, self.duration(self._needed(name, missing))), target)
        return missing.seen + target - reserve

    @cached_property
    def _temporal(self) -> frozenset[str]:
        return frozenset(name for name, model in self.models.items() if model.temporal)

    @cached_property
    def _everything(self) -> int:
        return self.duration(self.models)

    def duration(self, models: Iterable[str]) -> int:
        """The longest that one run of these models takes, whatever their order (R. L. Graham, *Bounds on
        multiprocessing timing anomalies*, 1969): the critical path, and all else spread over the threads."""
        chosen, path = set(models), 0
        total = sum(self.models[name].duration for name in chosen)
        if self.threads == 1:
            return self.overhead + total
        ends: dict[str, int] = {}
        for name in self.order:
            before = max((ends[one] for one in self._models_in(name)), default=0)
            ends[name] = before + (self.models[name].duration if name in chosen else 0)
            path = max(path, ends[name])
        return self.overhead + path + -(-(total - path) // self.threads)


def _position(change: Change) -> Time:
    return change.position


def _least(*values: int | None) -> int | None:
    return min((one for one in values if one is not None), default=None)
