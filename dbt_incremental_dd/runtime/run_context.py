"""What the models of one run share: its time, where inputs were when it came upon them, and sources, each taken in
once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from dbt_incremental_dd.core.profile import phase
from dbt_incremental_dd.core.time import Time, now
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.beginnings import Beginnings
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.compact import forget
from dbt_incremental_dd.runtime.request import Report
from dbt_incremental_dd.runtime.run_log.log import RunLog
from dbt_incremental_dd.runtime.source_relation import follow_source, needs_relation
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.definition import require_same
from dbt_incremental_dd.sources.intake import Intake, take_in
from dbt_incremental_dd.sources.poll import RunScope
from dbt_incremental_dd.storage import uploads
from dbt_incremental_dd.trace.found_rows import FoundRows
from dbt_incremental_dd.trace.holds import Holds, holds_of_models
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.lock import writing
from dbt_incremental_dd.trace.log import Log

_LATEST = "time"


class RunContext:
    """What all models of one invocation share. Its methods may be called from several threads.

    ``target_time``: what sources have taken in is stamped with it; by default the clock, but always greater than
    every time already final. ``runs_kept``: for how many ms the rows of ``dd_runs`` are; 0: there are none.
    """

    def __init__(
        self,
        session: LazySession,
        storage: Storage,
        invocation: str,
        target_time: Time | None,
        report: Report,
        runs_kept: int = 0,
    ) -> None:
        if storage.is_local:  # in object storage, writing the run's time shows it
            storage.require_writable()
        self.session = session
        self.catalog = Catalog(session)
        self.storage = storage.for_run()
        self.invocation = invocation
        self.report = report
        try:
            self.time = _target(self.storage, target_time)
        except OSError as error:
            raise storage.not_writable(error) from error
        self.scope = RunScope()
        """What its sources have in common."""
        self.found = FoundRows()
        """What its intakes and models have found by key."""
        self.inputs = Beginnings(self.storage)
        """Where collections were when this run came upon them."""
        self.run_log = RunLog(self.storage, invocation, runs_kept) if runs_kept else None
        """What its models did; None if that is not noted."""
        self._taken_in: dict[str, _Once] = {}
        self._holds: Holds | None = None
        self._lock = threading.Lock()

    def source(self, spec: SourceSpec) -> Intake:
        """The source, taken in once in this run. Raises ConfigError where models read it by different settings."""
        self.inputs.begin(spec.name)
        with self._lock:
            once = self._taken_in.setdefault(spec.name, _Once(spec))
        if once.spec != spec:
            require_same(once.spec, spec, self.session)
        return once.get(lambda: self._take_in(spec))

    def _take_in(self, spec: SourceSpec) -> Intake:
        with phase("intake", spec.name) as noted:
            intake = take_in(
                self.session, self.storage, spec, t=self.time, report=self.report, scope=self.scope, found=self.found
            )
            noted.rows = intake.rows
        if intake.rows:
            with writing(self.storage.collection(spec.name), self.report):
                intake = replace(intake, log=self._forget(intake.log))
        if needs_relation(spec):
            follow_source(self.catalog, self.storage, spec, intake)
        return intake

    def forget(self, place: CollectionStore) -> None:
        """Compacts the collection, if it is time for that. Call it as its writer."""
        log = place.log()
        if log is not None:
            self._forget(log)

    def _forget(self, log: Log) -> Log:
        return forget(self.catalog, self.storage.collection(log.name), log, self._holds_of_models)

    def _holds_of_models(self) -> Holds:
        """Looked up once in this run. Models only read on meanwhile."""
        with self._lock:
            if self._holds is None:
                self._holds = holds_of_models(self.storage)
            return self._holds

    def finish(self) -> None:
        """Waits for what is still on its way to the state root, and stores what was noted of the runs. Raises
        DifferentialError if what is on its way does not get there."""
        try:
            uploads.settle(self.storage.root)
        except OSError as error:
            raise self.storage.not_writable(error) from error
        finally:
            if self.run_log is not None:
                self.run_log.write()

    def note(self, t: Time) -> None:
        """A model's contents are stamped ``t``. Where that is behind the run's time, later runs come after it."""
        if t > self.time:
            _target(self.storage, t)


class _Once:
    """A source that is taken in by whoever asks first; the others wait for it. An error is everybody's."""

    def __init__(self, spec: SourceSpec) -> None:
        self.spec = spec
        self._lock = threading.Lock()
        self._value: Intake | None = None
        self._error: Exception | None = None

    def get(self, compute: Callable[[], Intake]) -> Intake:
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._value is None:
                try:
                    self._value = compute()
                except Exception as error:
                    self._error = error
                    raise
            return self._value


def _target(storage: Storage, given: Time | None) -> Time:
    """The run's time. The latest one is remembered: a time given ahead of the clock, or a clock that went back, must
    not keep later runs from taking anything in."""
    text = storage.read_small(_LATEST) or ""
    latest = int(text) if text.isdecimal() else 0
    time = max(now(), latest + 1) if given is None else given
    if time > latest:
        storage.write_small(_LATEST, str(time))
    return time
