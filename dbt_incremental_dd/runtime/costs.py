"""What a model's runs took, and from that what the next one would take by a delta and by building it anew.

A delta is taken to cost a fixed part and so much for each changed update, as former ones of a like size say; a build,
as much for each update of the inputs as the last one. Where no such delta has run yet, an update of one is taken to
cost several times what it costs in a build, because it is looked up.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_incremental_dd.runtime.request import Strategy

_KEPT = 12
_LOOKED_UP = 8
"""An update of a delta costs so much more than one of a build, until runs tell."""
_FIXED = 0.5
"""Seconds of any delta, until runs tell."""
_ALIKE = 10
"""Deltas tell of ones that are at most so many times as large."""
_SMALL = 10_000
"""Changed updates; fewer never make a build worthwhile."""


@dataclass(frozen=True)
class Spent:
    """One run: updates that were new to it, all updates of its inputs then, and seconds up to its commit."""

    built: bool
    changed: int
    total: int
    seconds: float


@dataclass(frozen=True)
class Costs:
    """The latest runs, oldest first; the last build is among them."""

    runs: tuple[Spent, ...]

    @staticmethod
    def of(manifest: Mapping[str, Any]) -> Costs:
        """As a model's manifest has them."""
        return Costs(tuple(Spent(*run) for run in manifest.get("runs", ())))

    def with_run(self, strategy: Strategy, changed: int, total: int, seconds: float) -> list[Sequence[Any]]:
        """For the manifest: these and one more, of a build or a delta."""
        runs = [*self.runs, Spent(strategy != "delta", changed, total, round(seconds, 3))]
        build = [run for run in runs if run.built][-1:]
        kept = build + [run for run in runs if not run.built][-_KEPT:]
        return [[run.built, run.changed, run.total, run.seconds] for run in kept]

    @property
    def _build(self) -> Spent | None:
        """The last build, if it is recorded."""
        return next((run for run in self.runs if run.built), None)

    def build(self, total: int) -> float | None:
        """Seconds to build the model anew; None where it is not known."""
        build = self._build
        return None if build is None else build.seconds * max(total / max(build.total, 1), 1)

    def delta(self, changed: int) -> float | None:
        """Seconds of a delta; None where it is not known."""
        deltas = [run for run in self.runs if not run.built]
        build = self._build
        fixed = min((run.seconds for run in deltas), default=_FIXED)
        alike = [(run.seconds - fixed) / max(run.changed, 1) for run in deltas if _ALIKE * run.changed >= changed]
        if alike:
            return fixed + statistics.median(alike) * changed
        return None if build is None else fixed + _LOOKED_UP * build.seconds * changed / max(build.total, 1)

    def favours_build(self, changed: int, total: int) -> bool:
        """Whether to build the model anew and subtract what it held."""
        delta, build = self.delta(changed), self.build(total)
        if changed <= _SMALL or delta is None or build is None:
            return changed > _SMALL and 2 * changed > total
        return delta > build

    def told(self, changed: int, total: int) -> str:
        """Both estimates, in a line."""
        delta, build = self.delta(changed), self.build(total)
        if delta is None or build is None:
            return "Cost: no run is recorded yet"
        chosen = "a build" if self.favours_build(changed, total) else "a delta"
        deltas = sum(not run.built for run in self.runs)
        return (
            f"Cost: {changed:,} changed updates by a delta about {delta:.1f} s ({deltas} recorded), "
            f"by a build of {total:,} about {build:.1f} s; next: {chosen}"
        )
