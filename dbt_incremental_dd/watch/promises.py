"""Checks, beside the runs, whether promised lags are kept; notes it, and tells of each change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.target_lag import format_lag, lag_text
from dbt_incremental_dd.core.time import Time, format_time, now
from dbt_incremental_dd.trace.freshness import Stored
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.watched import Promise, note_promise, promise
from dbt_incremental_dd.watch.alerts import Alerts, LagEvent

_CHECK_SECONDS = {True: 1.0, False: 10.0}
"""Between two checks of a state root that is on a local disk, or is not."""


@dataclass
class Promises:
    """``models``: the collections whose lags are promised. It has a thread of its own, as a run may take long, and so
    may a hook."""

    storage: Storage
    models: tuple[str, ...]
    report: Callable[[str], None]
    alerts: Alerts = field(default_factory=Alerts)
    _ended: threading.Event = field(default_factory=threading.Event, init=False)
    _failed: str = field(default="", init=False)

    def begin(self) -> None:
        """Checks from now on, until ``end``."""
        threading.Thread(target=self._go_on, name="promised lags", daemon=True).start()

    def end(self) -> None:
        """No further check begins."""
        self._ended.set()

    def _go_on(self) -> None:
        usual = wait = _CHECK_SECONDS[self.storage.is_local]
        while not self._ended.wait(wait):
            wait = usual
            try:
                following = self.check(now())
                if following is not None:
                    wait = min(usual, max(0.0, (following - now()) / 1000))
                self._failed = ""
            except (DifferentialError, OSError) as error:
                if str(error) != self._failed:  # a run tells what is wrong, too
                    self._failed = str(error)
                    self.report(f"{format_time(now())}  target lags cannot be checked: {error}")

    def check(self, t: Time) -> Time | None:
        """Notes each promise's state as of ``t``, and tells those that have changed. A promise that is kept when it is
        first looked at is not told. Returns the time at which the next one will be missed, if its model does not run
        before; None if there is none."""
        stored, following = Stored(self.storage), []
        for model in self.models:
            found = stored.freshness(model)
            if found is None or isinstance(found.target_lag, str):
                continue
            missed = found.missed_since(t)
            if found.behind_since is not None and missed is None:
                following.append(found.behind_since + found.target_lag + 1)
            state = Promise("kept", t) if missed is None else Promise("missed", missed)
            before = promise(self.storage.collection(model))
            if before is not None and before.state == state.state:
                continue
            note_promise(self.storage.collection(model), state)
            if before is not None or state.state == "missed":
                self._tell(LagEvent(model, found.target_lag, found.lag(t), state))
        return min(following, default=None)

    def _tell(self, event: LagEvent) -> None:
        """The note comes first: whatever becomes of the hook, it is called once."""
        lag, target = lag_text(event.lag), format_lag(event.target_lag)
        is_missed = event.promise.state == "missed"
        what = f"MISSED: it is {lag} behind" if is_missed else "kept again"
        self.report(f"{format_time(now())}  {event.model}: target_lag of {target} {what}")
        for failure in self.alerts.tell(event):
            self.report(f"{format_time(now())}  on-missed-lag: {failure}")
