"""What a model's runs took, and from that how the next one gets there soonest.

A *delta* computes what the changed updates imply. A *build* computes everything, operators' states included. A
*recompute* runs the model's query as one Spark query and leaves the states behind: no delta can follow it, only a
build. All three store the difference to what is stored, and nothing else.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from dbt_incremental_dd.core.manifest import ModelManifest, RecordedRun, RunKind
from dbt_incremental_dd.runtime.request import Strategy

QUICK_SECONDS = 0.5
"""Small deltas that take less are kept, whatever else would take. Read by attribute: it may be set."""
_KEPT: Mapping[RunKind, int] = {"build": 2, "delta": 12, "recompute": 3}
"""Runs that are recorded."""
_LOOKED_UP = 8
"""An update of a delta costs so many times what it costs in a build, until runs tell."""
_IN_BULK, _JOINED = 1_000_000, 2
"""Of more updates than that the rows are not looked up one by one but joined, which costs each so many times what it
costs in a build."""
_FIXED = 0.5
"""Seconds of any delta, until runs tell."""
_ALIKE = 10
"""Deltas tell of ones that are at most so many times as large."""
_SMALL = 10_000
"""Changed updates; of fewer, only recorded deltas tell that something else is quicker."""
_TRIALS = 2
"""Small deltas before something else is done: the first one in a process is slow."""
_FAR = 3
"""Except where the first one took so many times as long as something else would. The same factor leads back."""
_EXPLORED = 1_000_000
"""Updates of all inputs, up to which it may be tried whether something else is quicker."""
_TIED = 100_000
"""Updates of all inputs, up to which a query that leaves ties open may be run as one: as many rows may change each time
without a reason. That does not matter where most rows have changed, of the inputs or in the model's last run."""
_GAIN = 1.2
"""A large change is recomputed only if that is so many times as quick as anything else: it leaves the states behind."""
_WORTHWHILE = 1.0
"""Seconds; what takes less otherwise is not recomputed for it."""
_PLANNED = 100_000
"""Updates that a query over all of them is through with while it is still being planned: of fewer it takes as long."""
_PLANNING = 1.0
"""Seconds that Spark needs at least to run a query for the first time. A build of few updates does not need Spark."""
_UNTRIED: Mapping[RunKind, int] = {"build": 2, "recompute": 4}
"""Then it is taken to be so many times as quick as the first build, which ran in a cold process."""


def _grown(run: RecordedRun, total: int) -> float:
    """Its seconds over inputs of ``total`` updates, if it read everything."""
    return run.seconds * max(max(total, _PLANNED) / max(run.total, _PLANNED), 1)


def _mark(names: Iterable[str]) -> str:
    """The same for the same names."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Costs:
    """The latest runs of each kind, oldest first.

    ``news``: the mark of the inputs that have changed now. ``can_recompute``: the query may be run as one;
    ``has_ties``: it leaves ties open; ``behind``: the last run left states behind, so that no delta can follow it;
    ``replaces``: the last run replaced most of the model's rows.
    """

    runs: tuple[RecordedRun, ...]
    news: str = ""
    can_recompute: bool = False
    has_ties: bool = False
    behind: bool = False
    replaces: bool = False

    @staticmethod
    def of(manifest: ModelManifest, changed: Iterable[str] = ()) -> Costs:
        """As a model's manifest has them. ``changed``: the names of the inputs that have changed."""
        removed, rows = manifest.change.rows_removed if manifest.change else 0, manifest.rows or 0
        return Costs(
            manifest.runs,
            news=_mark(changed),
            can_recompute=bool(manifest.can_recompute),
            has_ties=manifest.has_ties,
            behind=manifest.behind and not manifest.unbuilt,
            replaces=0 < rows <= 2 * removed,
        )

    def with_run(self, strategy: Strategy, changed: int, total: int, seconds: float) -> tuple[RecordedRun, ...]:
        """For the manifest: these and one more."""
        kind: RunKind = strategy if strategy == "delta" or strategy == "recompute" else "build"
        runs = (*self.runs, RecordedRun(kind, changed, total, round(seconds, 3), self.news))
        return tuple(run for kind, count in _KEPT.items() for run in [run for run in runs if run.kind == kind][-count:])

    def _of_kind(self, kind: RunKind) -> list[RecordedRun]:
        return [run for run in self.runs if run.kind == kind]

    def build(self, total: int) -> float | None:
        """Seconds to build the model anew, as the last build did. Returns None if none is recorded."""
        builds = self._of_kind("build")
        return _grown(builds[-1], total) if builds else None

    def may_recompute(self, changed: int, total: int) -> bool:
        """Whether a recompute over inputs of ``total`` updates, ``changed`` of them new, is one of the choices."""
        is_most = self.replaces or 2 * changed >= total
        return self.can_recompute and (total <= _TIED or is_most or not self.has_ties)

    def recompute(self, total: int) -> float | None:
        """Seconds of the query alone. Returns None if it has not been tried."""
        tried = [_grown(run, total) for run in self._of_kind("recompute")]
        return statistics.median_low(tried) if tried else None

    def delta(self, changed: int) -> float | None:
        """Seconds of a delta: a fixed part and so much for each changed update, as those of a like size took. Returns
        None if nothing is recorded."""
        quickest = self._quickest_delta()
        fixed = _FIXED if quickest is None else quickest
        alike = [(run.seconds - fixed) / max(run.changed, 1) for run in self._alike(changed)]
        if alike:
            return fixed + statistics.median_low(alike) * changed
        build = self._of_kind("build")[-1:]
        each = _LOOKED_UP if changed <= _IN_BULK else _JOINED
        return fixed + each * build[0].seconds * changed / max(build[0].total, 1) if build else None

    def _quickest_delta(self) -> float | None:
        return min((run.seconds for run in self._deltas), default=None)

    def _alike(self, changed: int) -> list[RecordedRun]:
        return [run for run in self._deltas if _ALIKE * run.changed >= changed]

    @property
    def _deltas(self) -> list[RecordedRun]:
        """Those that followed changes of the same inputs; all, where there are none: a change of a small table may
        touch most rows of a large one, and one of the large table few."""
        found = self._of_kind("delta")
        return [run for run in found if run.news == self.news] or found

    def choose(self, changed: int, total: int, opening: float = 0.0) -> Literal["delta", "rebuild", "recompute"]:
        """How the next run of that many changed updates gets there soonest.

        ``opening``: seconds of opening a session, which a query over everything needs and a small delta may not.
        """
        delta = self.delta(changed)
        if self.behind and delta is None:
            return "rebuild"  # no run is recorded: the rows were adopted
        if self.behind:
            back = changed <= _SMALL and delta is not None and _FAR * delta < opening + (self.recompute(total) or 0)
            return "rebuild" if back or not self.may_recompute(changed, total) else "recompute"
        if changed <= _SMALL:
            return self._choose_small(changed, total, opening)
        return self._choose_large(changed, total, opening)

    def _choose_large(self, changed: int, total: int, opening: float) -> Literal["delta", "rebuild", "recompute"]:
        delta, build = self.delta(changed), self.build(total)
        if delta is None or build is None:
            return "rebuild" if 2 * changed > total else "delta"
        query = self._expected("recompute", total) if self.may_recompute(changed, total) else None
        if query is not None and max(_GAIN * (opening + query), _WORTHWHILE) < min(delta, build):
            return "recompute"
        return "rebuild" if delta > build else "delta"

    def _choose_small(self, changed: int, total: int, opening: float) -> Literal["delta", "rebuild", "recompute"]:
        """Small deltas come again and again, so that what is done instead may leave the states behind."""
        alike, (kind, otherwise) = self._alike(changed), self._otherwise(changed, total)
        # A larger delta takes no less than a smaller one did.
        delta = self.delta(changed) if alike else self._quickest_delta()
        if delta is None or otherwise is None or delta < QUICK_SECONDS:
            return "delta"
        if delta <= opening + otherwise * (1 if len(alike) >= _TRIALS else _FAR):
            return "delta"
        return kind

    def _otherwise(self, changed: int, total: int) -> tuple[Literal["rebuild", "recompute"], float | None]:
        """What can be done instead of a delta, and its seconds. A build leaves states for the deltas that follow."""
        build = self._expected("build", total) or self.build(total)
        query = self._expected("recompute", total) if self.may_recompute(changed, total) else None
        if query is not None and (build is None or _GAIN * query < build):
            return "recompute", query
        return "rebuild", build

    def _expected(self, kind: RunKind, total: int) -> float | None:
        """Seconds of a recompute or a build. What has not been tried, besides the first build, is taken to be quicker
        than that, so that it is tried once; None where it is too large for that."""
        tried, build = self.recompute(total) if kind == "recompute" else None, self.build(total)
        is_tried = tried is not None or (kind == "build" and len(self._of_kind("build")) > 1)
        if is_tried or build is None or total > _EXPLORED:
            return tried
        return max(build / _UNTRIED[kind], _PLANNING if kind == "recompute" else 0)

    def told(self, changed: int, total: int) -> str:
        """All estimates, in a line."""
        delta, build, recompute = self.delta(changed), self.build(total), self.recompute(total)
        if delta is None or build is None:
            return "Cost: no run is recorded yet"
        query = ""
        if self.may_recompute(changed, total):
            query = ", as one query " + ("not tried" if recompute is None else f"about {recompute:.1f} s")
        behind = " (states are behind: a delta needs a build first)" if self.behind else ""
        chosen = {"delta": "a delta", "rebuild": "a build", "recompute": "one query"}[self.choose(changed, total)]
        return (
            f"Cost: {changed:,} changed updates by a delta about {delta:.1f} s ({len(self._of_kind('delta'))} recorded)"
            f"{behind}, by a build of {total:,} about {build:.1f} s{query}; next: {chosen}"
        )
