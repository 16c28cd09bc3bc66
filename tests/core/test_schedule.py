"""The schedule by target lags, simulated on a virtual clock. No JVM, no files."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from dbt_incremental_dd.core.schedule import Change, Schedule, ScheduledModel

SECOND = 1000


@dataclass
class World:
    """A graph of models, each change of a source, and what a run of each model really takes."""

    models: dict[str, ScheduledModel]
    arrivals: Mapping[str, Sequence[int]]
    threads: int = 1
    luck: random.Random = field(default_factory=random.Random)
    runs: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def schedule(self, now: int) -> Schedule:
        oldest = min((model.up_to for model in self.models.values()), default=0)
        changes = {
            name: [Change(t, t) for t in times[bisect_right(times, oldest) : bisect_right(times, now)]]
            for name, times in self.arrivals.items()
        }
        return Schedule(self.models, changes, self.threads)

    def simulate(self, until: int) -> None:
        """From one event to the next: an arrival, or a time at which something is due."""
        now, events = 0, sorted(itertools.chain(*self.arrivals.values()))
        while now < until:
            due = self.schedule(now).due(now)
            if due.models:
                now = self._run(now, due.models, due.asked)
                continue
            following = [t for t in (*events, due.at) if t is not None and t > now]
            now = min(following, default=until)
        for name in self.models:
            self._require_kept(name, until)

    def _run(self, began: int, models: Sequence[str], asked: Sequence[str]) -> int:
        """Greedily on the threads, each model after those above it. Returns the time at which all have ended."""
        schedule = self.schedule(began)
        self.runs.append((began, tuple(models), tuple(asked)))
        assert any(schedule.missing(name) for name in asked), "nothing is new"
        ends: dict[str, int] = {}
        free = [began] * self.threads
        waiting = list(models)
        while waiting:
            ready = [one for one in waiting if not set(self.models[one].inputs) & set(waiting)]
            starts = {one: max([began, *(ends[up] for up in self.models[one].inputs if up in ends)]) for one in ready}
            name = min(ready, key=lambda one: (starts[one], one))
            thread = free.index(min(free))
            start = max(free[thread], starts[name])
            ends[name] = free[thread] = start + self.luck.randint(0, self.models[name].duration)
            waiting.remove(name)
        for name in models:  # which is upstream first
            inputs = [self.models[one].up_to for one in self.models[name].inputs if one in self.models]
            assert not set(self.models[name].inputs) & set(models[models.index(name) :]), "upstream is first"
            self._require_kept(name, ends[name], began)
            self.models[name] = replace(self.models[name], up_to=min([began, *inputs]))
        return max(ends.values())

    def _require_kept(self, name: str, now: int, seen_by: int | None = None) -> None:
        target = self.models[name].target
        missing = self.schedule(now if seen_by is None else seen_by).missing(name)
        if not isinstance(target, str) and missing is not None and missing.seen + target < now:
            self.missed.append(f"{name}: {now - missing.seen} of {target}")


def optimum(arrivals: Sequence[int], lag: int) -> int:
    """The least number of runs with which no change waits longer than the lag: each run as late as it may be."""
    runs, contained = 0, -1
    for t in sorted(arrivals):
        if t > contained:
            runs, contained = runs + 1, t + lag
    return runs


def random_world(luck: random.Random, horizon: int, load: int) -> World:
    """``load``: the tightest lag is at least so many times what a run of everything takes."""
    sources = [f"s{i}" for i in range(luck.randint(1, 3))]
    names = [f"m{i}" for i in range(luck.randint(1, 9))]
    models: dict[str, ScheduledModel] = {}
    for i, name in enumerate(names):
        inputs = luck.sample([*sources, *names[:i]], luck.randint(1, min(3, len(sources) + i)))
        models[name] = ScheduledModel(tuple(inputs), "downstream", 0, luck.randint(0, 4 * SECOND))
    threads = luck.randint(1, 3)
    everything = Schedule(models, {}, threads).duration(models)
    for name in models:
        if luck.random() < 0.6:
            lag = luck.randint(max(load * everything, 1), load * everything + luck.choice([10, 100, 1000]) * SECOND)
            models[name] = replace(models[name], target=lag)
    arrivals = {source: sorted(luck.sample(range(1, horizon), luck.choice([0, 1, 5, 40, 200]))) for source in sources}
    return World(models, arrivals, threads, luck)


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    """Promises are kept where there is capacity, upstream first, and nothing runs more often than needed."""
    horizon = 3000 * SECOND
    world = random_world(random.Random(seed), horizon, load=4)
    lags, above = world.schedule(0).lags, world.schedule(0).above
    world.simulate(horizon + 3000 * SECOND)
    assert world.missed == []
    ran = Counter(name for _, models, _ in world.runs for name in models)
    roots = [name for name in world.models if not above[name] & world.models.keys()]
    most: dict[str, int] = {}
    for name in roots:
        lag = lags[name]
        # A run that is asked for by a model below also concerns that one's other sources.
        below = {one for one in world.models if name in (one, *above[one])}
        concern = {source for one in below for source in above[one] if source in world.arrivals}
        arrivals = [t for source in concern for t in world.arrivals[source]]
        most[name] = 0 if lag is None else optimum(arrivals, lag // 2 - 1)
        times = [began for began, models, _ in world.runs if name in models]
        assert ran[name] <= most[name]
        assert lag is None or all(b - a >= lag // 2 for a, b in itertools.pairwise(times))
    for name in world.models:
        if lags[name] is None:
            assert ran[name] == 0, "nobody needs it"
        elif name not in roots:
            assert ran[name] <= sum(most[one] for one in roots if one in above[name])


@pytest.mark.parametrize("seed", range(20))
def test_overload_is_no_deadlock(seed: int) -> None:
    """Lags that cannot be kept: what can be done is done, and all is caught up in the end."""
    horizon = 300 * SECOND
    world = random_world(random.Random(seed), horizon, load=0)
    lags = world.schedule(0).lags
    world.simulate(horizon + 3000 * SECOND)
    for name, lag in lags.items():
        assert lag is None or world.schedule(10**9).missing(name) is None


def test_as_few_runs_as_an_ideal_schedule() -> None:
    """Runs that take no time are as few as any schedule's can be; compared with all schedules of some times."""
    luck = random.Random(7)
    for _ in range(60):
        arrivals = sorted(luck.sample(range(1, 60), luck.randint(1, 7)))
        lag = luck.randint(1, 20)
        models = {
            "a": ScheduledModel(("s",), "downstream", 0),
            "b": ScheduledModel(("a",), lag, 0),
            "c": ScheduledModel(("a",), luck.randint(lag, 3 * lag), 0),
        }
        world = World(models, {"s": arrivals})
        world.simulate(1000)
        ran = Counter(name for _, found, _ in world.runs for name in found)
        ideal = next(
            count
            for count in range(len(arrivals) + 1)
            for times in itertools.combinations([t + lag for t in arrivals], count)
            if all(any(t <= at <= t + lag for at in times) for t in arrivals)
        )
        assert world.missed == [] and ran["a"] == ran["b"] == ideal == optimum(arrivals, lag)
        assert ran["c"] <= ideal


def test_a_diamond_runs_once() -> None:
    models = {
        "stg": ScheduledModel(("s",), "downstream", 0, SECOND),
        "left": ScheduledModel(("stg",), "downstream", 0, SECOND),
        "right": ScheduledModel(("stg", "other"), 60 * SECOND, 0, SECOND),
        "mart": ScheduledModel(("left", "right"), 20 * SECOND, 0, SECOND),
        "unread": ScheduledModel(("stg",), "downstream", 0, SECOND),
    }
    schedule = Schedule(models, {"s": [Change(100, 100)]})
    assert schedule.lags == {"stg": 20_000, "left": 20_000, "right": 20_000, "mart": 20_000, "unread": None}
    due = schedule.due(100)
    assert due == ((), (), 100 + 20_000 - 10_000)
    due = schedule.due(due.at or 0)
    assert due.models == ("stg", "left", "right", "mart") and due.asked == ("mart",)
    assert schedule.due(10**6, held=["left"]).models == ("stg", "right"), "mart waits for left; right does not"
    done = {name: replace(model, up_to=10_100) for name, model in models.items() if name != "unread"}
    assert replace(schedule, models={**models, **done}).due(10**6) == ((), (), None)


def test_what_runs_at_once_and_what_is_above_it() -> None:
    """A model without a target lag runs as soon as there is something new, with all that it needs."""
    models = {
        "slow": ScheduledModel(("s",), 3600 * SECOND, 0),
        "quick": ScheduledModel(("slow", "t"), 0, 0),
        "late": ScheduledModel(("s",), 3600 * SECOND, 0),
    }
    due = Schedule(models, {"s": [Change(50, 50)]}).due(50)
    assert due.models == ("slow", "quick") and due.asked == ("quick",)


def test_time_is_a_change_of_what_time_changes() -> None:
    models = {
        "recent": ScheduledModel(("s",), "downstream", 2000, temporal=True),
        "top": ScheduledModel(("recent",), 60 * SECOND, 1000),
        "quick": ScheduledModel(("recent",), 0, 1000),
    }
    schedule = Schedule(models)
    assert schedule.missing("top") == Change(1000, 1001)
    assert schedule.due(1000).at == 61_000
    assert schedule.missing("quick") is None and schedule.due(61_000).models == ("top",)
    brought = replace(models["top"], up_to=2000)
    assert replace(schedule, models={**models, "top": brought}).due(62_000).models == ("recent", "top")


def test_a_run_takes_its_path_and_the_rest_spread() -> None:
    models = {name: ScheduledModel((), 0, 0, 10) for name in "abcd"}
    assert Schedule(models, threads=1).duration(models) == 40
    assert Schedule(models, threads=4, overhead=5).duration(models) == 5 + 10 + 8
    chain = {
        "a": ScheduledModel((), 0, 0, 10),
        "b": ScheduledModel(("a",), 0, 0, 10),
        "c": ScheduledModel(("b",), 0, 0, 10),
    }
    assert Schedule(chain, threads=4).duration(["a", "c"]) == 20
