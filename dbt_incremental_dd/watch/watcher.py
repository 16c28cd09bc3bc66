"""Polls the sources of projects, and runs the models that a change affects: at once, or as their target lags allow."""

from __future__ import annotations

import os
import threading
import time as clock
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.time import Time, format_time, now
from dbt_incremental_dd.sources.change_token import change_token, poll_interval
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.watch.alerts import Alerts
from dbt_incremental_dd.watch.graph import WatchedModel
from dbt_incremental_dd.watch.lags import Lags, has_target_lags, promised
from dbt_incremental_dd.watch.project import ModelResult, Project, RunFailed
from dbt_incremental_dd.watch.promises import Promises

if TYPE_CHECKING:
    from dbt_incremental_dd.relation.lazy_session import LazySession

POLL = 0.05
"""Interval at which sources on a local disk are polled; a poll takes less than a tenth of it."""
_PROJECT_POLL_SECONDS = 2.0
"""Interval at which the project's own files are polled."""
_OTHERS_SECONDS = 10.0
"""Interval at which it is looked how far others have brought models that are scheduled by target lags."""
_RETRY_SECONDS = 15.0
"""Interval at which failed models are run again."""


@dataclass(frozen=True)
class Intervals:
    """Intervals in seconds; 0: never. ``every``: runs of all models even if nothing is new, for sources without a
    change token, and for rows that leave as time passes. ``compaction``: compaction of history beyond the window."""

    every: float = 60.0
    compaction: float = 600.0


@dataclass
class WatchedProject:
    """One project, and its sources' change tokens as of its last run."""

    project: Project
    report: Callable[[str], None] = print
    intervals: Intervals = field(default_factory=Intervals)
    alerts: Alerts = field(default_factory=Alerts)
    parsed: Callable[[Project], None] = lambda project: None
    """Is told of the project after its first run, and whenever it has been edited. Raises errors in it."""
    _lags: Lags | None = field(default=None, init=False)
    """None where no model has a target lag, or until the first run has found the storage."""
    _promises: Promises | None = field(default=None, init=False)
    _looked: dict[str, Time] = field(default_factory=dict, init=False)
    """The time (ms) of the last look at each source."""
    _tokens: dict[str, Hashable] = field(default_factory=dict, init=False)
    _sources: dict[str, SourceSpec] = field(default_factory=dict, init=False)
    _models: dict[str, WatchedModel] = field(default_factory=dict, init=False)
    _due: dict[str, float] = field(default_factory=dict, init=False)
    _storage: Storage | None = field(default=None, init=False)
    _session: Callable[[], LazySession] | None = field(default=None, init=False)
    _files: Hashable = field(default=None, init=False)
    _has_failed: bool = field(default=False, init=False)

    def begin(self) -> None:
        """Runs everything once. Raises errors in the project."""
        self.project.parse()
        self._sources, self._models = self.project.sources(), self.project.graph()
        self._files = _stamps(self.project.files())
        self._run((), "everything")
        self.parsed(self.project)

    def step(self) -> bool:
        """Runs what is due. Returns whether anything was."""
        if self._is_due("files", _PROJECT_POLL_SECONDS) and self._has_changed():
            return True
        changed_sources = [name for name in self._sources if self._is_new(name)]
        if self._lags is not None:
            if self._run_due(self._lags, changed_sources):
                return True
        elif changed_sources:
            return self._run(changed_sources, ", ".join(sorted(self._sources[name].name for name in changed_sources)))
        failed = self._has_failed if self._lags is None else bool(self._lags.failed)
        if failed and self._is_due("again", _RETRY_SECONDS):
            why = "what has failed, again"
            return self._run((), why) if self._lags is None else self._run_models(self._lags, self._lags.failed, why)
        if self._is_due("every", self.intervals.every):
            return self._run((), "everything") if self._lags is None else self._run_without_news(self._lags)
        if self._is_due("compaction", self.intervals.compaction):
            return self._compact()
        return False

    def _run(self, changed_sources: Sequence[str], why: str) -> bool:
        """Runs the models on these sources, or all. Tokens are read before the run, so that what arrives meanwhile is
        new in the next run."""
        began, time = clock.monotonic(), now()
        tokens = {name: self._token(name) for name in (changed_sources or self._sources)}
        self._tokens.update(tokens)
        selected = self.project.affected(changed_sources) if changed_sources else None
        results, failed = self._run_selected(selected, why)
        self._has_failed = failed is not None or (self._has_failed and bool(changed_sources))
        if not changed_sources:
            self._follow_lags()
        if self._lags is not None:
            all_failed, seconds = _failed_of(self._models, failed), clock.monotonic() - began
            self._lags.ran(self._models, time, seconds, results, all_failed, is_usual=False)
        for name in ("again", *(() if changed_sources else ("every",))):
            self._due[name] = clock.monotonic()
        return True

    def _run_selected(
        self, selected: Sequence[str] | None, why: str
    ) -> tuple[Sequence[ModelResult], frozenset[str] | None]:
        """Runs these models, or all. Returns their results, and what has failed, which is reported: None if nothing
        has, nothing if the run has as a whole."""
        began = clock.monotonic()
        try:
            results = self.project.run(selected)
            self._find_storage()
        except RunFailed as error:
            with suppress(KeyError):  # dbt has not come as far as to the profile
                self._find_storage()
            self.report(f"{format_time(now())}  FAILED  {error}")
            return (), error.failed
        except DifferentialError as error:
            self.report(f"{format_time(now())}  FAILED  {error}")
            return (), frozenset()
        self._report_run(results, why, clock.monotonic() - began)
        return results, None

    def _find_storage(self) -> None:
        self._storage = self._storage or self.project.storage()
        self._session = self._session or self.project.session()

    def _follow_lags(self) -> None:
        """Schedules by target lags from now on, if there are any."""
        if self._lags is not None or self._storage is None:
            return
        self.close()
        if not has_target_lags(self._models):
            return
        self._lags = Lags(self._storage, self._models, self._sources, round(_RETRY_SECONDS * 1000))
        if names := promised(self._models):
            self._promises = Promises(self._storage, names, self.report, self.alerts)
            self._promises.begin()

    def _run_due(self, lags: Lags, changed_sources: Sequence[str]) -> bool:
        """Takes note of what is new, and runs what is due, if anything is."""
        self._note(lags, changed_sources)
        if self._is_due("others", _OTHERS_SECONDS):
            lags.refresh()
        due = lags.due(now())
        if not due.models:
            return False
        # What has come since the last look is taken in by this run, and is new to the models that are not in it.
        self._note(lags, [name for name in lags.read_by(due.models) if self._has_news(name)])
        asked = ", ".join(lags.models[id].selector.split(".")[-1] for id in due.asked)
        return self._run_models(lags, due.models, f"due: {asked}")

    def _run_without_news(self, lags: Lags) -> bool:
        """Sources that cannot be looked at may have something new. What runs at once runs also without news."""
        for name in self._sources:
            if self._token(name) is None:
                lags.note(name, now(), now())
        return bool(lags.at_once) and self._run_models(lags, lags.at_once, "everything that has no target lag")

    def _run_models(self, lags: Lags, models: Sequence[str], why: str) -> bool:
        began, time = clock.monotonic(), now()
        results, failed = self._run_selected([lags.models[id].selector for id in models], why)
        lags.ran(models, time, clock.monotonic() - began, results, _failed_of(models, failed))
        self._due["again"] = clock.monotonic()
        return True

    def _note(self, lags: Lags, changed_sources: Sequence[str]) -> None:
        for name in changed_sources:
            self._tokens[name] = self._token(name)
            lags.note(name, now(), self._looked.get(name, now()))
        self._looked.update(dict.fromkeys(changed_sources, now()))

    def close(self) -> None:
        """Nothing is checked any more."""
        if self._promises is not None:
            self._promises.end()
            self._promises = None

    def _report_run(self, results: Sequence[ModelResult], why: str, seconds: float) -> None:
        changed_models = [one for one in results if one.rows_added or one.rows_removed]
        changed = [f"{one.name} +{one.rows_added} -{one.rows_removed}" for one in changed_models]
        if changed or not self._due.get("report"):
            self._due["report"] = clock.monotonic()
            self.report(f"{format_time(now())}  {why}: {', '.join(changed) or 'nothing new'}  ({seconds:.2f} s)")

    def _is_new(self, name: str) -> bool:
        spec = self._sources[name]
        every = poll_interval(spec)
        if every and not self._is_due(name, every):
            return False
        return self._has_news(name)

    def _has_news(self, name: str) -> bool:
        time, token = now(), self._token(name)
        if token is None or token == self._tokens.get(name):
            self._looked[name] = time
            return False
        return True

    def _token(self, name: str) -> Hashable | None:
        return change_token(self._storage or Storage(self.project.folder), self._sources[name])

    def _has_changed(self) -> bool:
        """Parses and runs the project if it has been edited. Returns whether it has."""
        files = _stamps(self.project.files())
        if files == self._files:
            return False
        self._files = files
        try:
            self.project.parse()
            self._sources, self._models = self.project.sources(), self.project.graph()
            self._files = _stamps(self.project.files())
            self.parsed(self.project)
        except DifferentialError as error:
            self.report(f"{format_time(now())}  FAILED  {error}")
            return True
        self._lags = None
        return self._run((), "the project has changed")

    def _compact(self) -> bool:
        from dbt_incremental_dd.runtime.compact import compact

        if self._storage is None or self._session is None:
            return False
        try:
            for _ in compact(self._session(), self._storage):
                pass
        except DifferentialError as error:
            self.report(f"{format_time(now())}  compaction FAILED  {error}")
        return True

    def _is_due(self, what: str, seconds: float) -> bool:
        """Whether ``seconds`` have passed since it was last due; never if 0."""
        last = self._due.setdefault(what, clock.monotonic())
        if not seconds or clock.monotonic() - last < seconds:
            return False
        self._due[what] = clock.monotonic()
        return True


def watch(projects: Sequence[WatchedProject], stop: threading.Event) -> None:
    """Keeps the projects up to date until ``stop`` is set. Raises errors in a project at the start."""
    try:
        for watched in projects:
            watched.begin()
        while not stop.is_set():
            began = clock.monotonic()
            were_busy = [watched.step() for watched in projects]
            if not any(were_busy):
                stop.wait(max(POLL, 10 * (clock.monotonic() - began)))
    finally:
        for watched in projects:
            watched.close()


def _failed_of(models: Iterable[str], failed: frozenset[str] | None) -> frozenset[str]:
    """Those of the models that have failed, as ``_run_selected`` tells it."""
    return frozenset() if failed is None else failed or frozenset(models)


def _stamps(paths: Sequence[str]) -> Hashable:
    found = []
    for path in paths:
        try:
            found.append((path, os.stat(path).st_mtime_ns))
        except OSError:
            found.append((path, 0))
    return tuple(found)
