"""What the models of one invocation did, on its way to the collections that tell of runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from dbt_incremental_dd.core.profile import Profile
from dbt_incremental_dd.core.time import Time, now
from dbt_incremental_dd.runtime.request import Outcome
from dbt_incremental_dd.runtime.run_log.columns import OPERATORS, RUNS, Row, failed_row, operator_rows, run_row
from dbt_incremental_dd.runtime.run_log.store import Batch, Retention, append
from dbt_incremental_dd.trace.layout import Storage

_LOG = logging.getLogger(__name__)
MOST_RUNS, MOST_OPERATORS = 10_000, 100_000
"""Rows that are kept."""
_warned: set[str] = set()
"""State roots of which it was told that they take no rows."""
_aside: ThreadPoolExecutor | None = None


@contextmanager
def written_aside() -> Iterator[None]:
    """For a process that has one command after another: within it rows are stored in the background, so that the next
    command does not wait for it. At its end they are stored."""
    global _aside
    with ThreadPoolExecutor(1, "run log") as pool:
        _aside = pool
        try:
            yield
        finally:
            _aside = None


class RunLog:
    """Rows of the models that had something to do; those that had not are counted only. Thread-safe.

    ``age``: for how many ms rows are kept.
    """

    def __init__(self, storage: Storage, invocation: str, age: int) -> None:
        self._storage = storage
        self._invocation = invocation
        self._age = age
        self._runs: list[Row] = []
        self._operators: list[Row] = []
        self._unchanged = 0
        self._lock = threading.Lock()

    def succeeded(self, began: Time, outcome: Outcome) -> None:
        """Notes a run that began then (ms)."""
        if outcome.strategy == "skip":
            with self._lock:
                self._unchanged += 1
            return
        self._note(run_row(self._invocation, began, now(), outcome), outcome.profile)

    def failed(self, model: str, began: Time, profile: Profile, error: Exception) -> None:
        """Notes a run that has failed."""
        self._note(failed_row(model, self._invocation, began, now(), profile, error), profile)

    def _note(self, row: Row, profile: Profile) -> None:
        with self._lock:
            self._runs.append(row)
            self._operators += operator_rows(row, profile)

    def write(self) -> None:
        """Stores what has been noted since the last time, in one commit of each collection; nothing if all models were
        unchanged. What cannot be stored is dropped, with one warning: no run fails for it."""
        with self._lock:
            runs, operators, unchanged = self._runs, self._operators, self._unchanged
            self._runs, self._operators = [], []
        if not runs:
            return
        told = [{**row, "unchanged": unchanged} for row in runs]
        if _aside is None:
            self._store(told, operators)
        else:
            _aside.submit(self._store, told, operators)

    def _store(self, runs: Sequence[Row], operators: Sequence[Row]) -> None:
        collection = self._storage.collection
        try:
            append(
                Batch(collection(RUNS), runs, Retention(MOST_RUNS, self._age)),
                Batch(collection(OPERATORS), operators, Retention(MOST_OPERATORS, self._age)),
            )
        except Exception as error:  # an observer
            self._warn(error)

    def _warn(self, error: Exception) -> None:
        if self._storage.root not in _warned:
            _warned.add(self._storage.root)
            _LOG.warning("runs are not noted in %s: %s", RUNS, error)
