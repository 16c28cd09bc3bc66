"""Polls the sources of projects, and runs the models that a change affects."""

from __future__ import annotations

import os
import threading
import time as clock
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.time import format_time, now
from dbt_incremental_dd.sources.change_token import change_token, poll_interval
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.watch.project import ModelResult, Project

if TYPE_CHECKING:
    from dbt_incremental_dd.relation.lazy_session import LazySession

POLL = 0.05
"""Interval at which sources on a local disk are polled; a poll takes less than a tenth of it."""
_PROJECT_POLL_SECONDS = 2.0
"""Interval at which the project's own files are polled."""
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
    _tokens: dict[str, Hashable] = field(default_factory=dict, init=False)
    _sources: dict[str, SourceSpec] = field(default_factory=dict, init=False)
    _due: dict[str, float] = field(default_factory=dict, init=False)
    _storage: Storage | None = field(default=None, init=False)
    _session: Callable[[], LazySession] | None = field(default=None, init=False)
    _files: Hashable = field(default=None, init=False)
    _has_failed: bool = field(default=False, init=False)

    def begin(self) -> None:
        """Runs everything once. Raises errors in the project."""
        self.project.parse()
        self._sources = self.project.sources()
        self._files = _stamps(self.project.files())
        self._run((), "everything")

    def step(self) -> bool:
        """Runs what is due. Returns whether anything was."""
        if self._is_due("files", _PROJECT_POLL_SECONDS) and self._has_changed():
            return True
        changed_sources = [name for name in self._sources if self._is_new(name)]
        if changed_sources:
            return self._run(changed_sources, ", ".join(sorted(self._sources[name].name for name in changed_sources)))
        if self._has_failed and self._is_due("again", _RETRY_SECONDS):
            return self._run((), "what has failed, again")
        if self._is_due("every", self.intervals.every):
            return self._run((), "everything")
        if self._is_due("compaction", self.intervals.compaction):
            return self._compact()
        return False

    def _run(self, changed_sources: Sequence[str], why: str) -> bool:
        """Runs the models on these sources, or all. Tokens are read before the run, so that what arrives meanwhile is
        new in the next run."""
        began = clock.monotonic()
        tokens = {name: self._token(name) for name in (changed_sources or self._sources)}
        self._tokens.update(tokens)
        try:
            results = self.project.run(self.project.affected(changed_sources) if changed_sources else None)
            self._storage = self._storage or self.project.storage()
            self._session = self._session or self.project.session()
            self._has_failed = self._has_failed and bool(changed_sources)
            self._report_run(results, why, clock.monotonic() - began)
        except DifferentialError as error:
            self._has_failed = True
            self.report(f"{format_time(now())}  FAILED  {error}")
        for name in ("again", *(() if changed_sources else ("every",))):
            self._due[name] = clock.monotonic()
        return True

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
        token = self._token(name)
        return token is not None and token != self._tokens.get(name)

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
            self._sources = self.project.sources()
            self._files = _stamps(self.project.files())
        except DifferentialError as error:
            self.report(f"{format_time(now())}  FAILED  {error}")
            return True
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
    for watched in projects:
        watched.begin()
    while not stop.is_set():
        began = clock.monotonic()
        were_busy = [watched.step() for watched in projects]
        if not any(were_busy):
            stop.wait(max(POLL, 10 * (clock.monotonic() - began)))


def _stamps(paths: Sequence[str]) -> Hashable:
    found = []
    for path in paths:
        try:
            found.append((path, os.stat(path).st_mtime_ns))
        except OSError:
            found.append((path, 0))
    return tuple(found)
