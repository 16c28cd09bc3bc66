"""Tells the observers of the server of each access. What they fail at is reported once, and fails no access."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dbt_incremental_dd.serve.usage import Usage


class Observer(Protocol):
    """Called in the event loop: it must not wait."""

    def began(self, usage: Usage) -> None:
        """A subscription has begun; ``ended`` follows when it ends."""

    def ended(self, usage: Usage) -> None:
        """An access has ended."""


class Recorder:
    """Belongs to one event loop."""

    def __init__(self, observers: Sequence[Observer] = (), report: Callable[[str], None] = print) -> None:
        self._observers = observers
        self._report = report
        self._failed: set[int] = set()

    def began(self, usage: Usage) -> None:
        """A subscription has begun."""
        usage.has_begun = True
        for observer in self._observers:
            self._tell(observer, observer.began, usage)

    def ended(self, usage: Usage) -> None:
        """An access has ended."""
        for observer in self._observers:
            self._tell(observer, observer.ended, usage)

    def _tell(self, observer: Observer, call: Callable[[Usage], None], usage: Usage) -> None:
        try:
            call(usage)
        except Exception as error:
            if id(observer) not in self._failed:
                self._failed.add(id(observer))
                self._report(f"WARNING: {type(observer).__name__} has failed: {error}")
