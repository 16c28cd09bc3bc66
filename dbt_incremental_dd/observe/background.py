"""What is sent to other systems is sent beside the run, in order, by one thread that lives as long as there is
something to send."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache

WAIT_SECONDS = 3.0
"""Longest time for which the end of a run waits for what is still to be sent."""
THREAD = "sends to observers"
"""The thread's name."""
MOST = 500
"""Sendings that wait; with as many, further ones are dropped."""


class NotSent(Exception):
    """Something has not been sent, or not yet."""


class Background:
    """Threads may share it. A sending that fails is dropped; the next ``settle`` tells."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._due: deque[Callable[[], object]] = deque()
        self._changed = threading.Condition()
        self._is_working = False
        self._is_late = False
        self._began = 0.0
        self._failure = ""

    def send(self, send: Callable[[], object]) -> None:
        """Calls it later, after those before it. What it raises, it has not sent."""
        with self._changed:
            if len(self._due) >= self._most:
                self._failure = self._failure or f"more than {self._most} sendings are waiting"
                return
            self._due.append(send)
            if not self._is_working:
                self._is_working, self._began = True, time.monotonic()
                threading.Thread(target=self._work, name=THREAD, daemon=True).start()

    def settle(self, seconds: float | None = None) -> None:
        """Waits until all is sent, ``WAIT_SECONDS`` at most or so many, of which those count that the current sending
        has taken already; not at all if the last wait was in vain and nothing has been sent since. Raises NotSent with
        the first failure since the last call, or if it takes longer."""
        seconds = WAIT_SECONDS if seconds is None else seconds
        with self._changed:
            left = 0.0 if self._is_late else self._began + seconds - time.monotonic()
            self._changed.wait_for(lambda: not self._is_working, max(0.0, left))
            failure, self._failure = self._failure, ""
            self._is_late = self._is_working
            if failure or self._is_late:
                raise NotSent(failure or f"no answer within {seconds:g} s")

    def _work(self) -> None:
        while (send := self._next()) is not None:
            try:
                send()
                self._note(is_late=False)
            except Exception as error:
                self._note(failure=f"{type(error).__name__}: {error}")

    def _next(self) -> Callable[[], object] | None:
        with self._changed:
            if self._due:
                self._began = time.monotonic()
                return self._due.popleft()
            self._is_working = False
            self._changed.notify_all()
            return None

    def _note(self, *, is_late: bool | None = None, failure: str = "") -> None:
        with self._changed:
            self._failure = self._failure or failure
            self._is_late = self._is_late if is_late is None else is_late


@cache
def background(name: str) -> Background:
    """The process's own for the observer of that name. A forked process has none of the threads, and makes its own."""
    return Background()


if hasattr(os, "register_at_fork"):  # on Windows there is no fork
    os.register_at_fork(after_in_child=background.cache_clear)
