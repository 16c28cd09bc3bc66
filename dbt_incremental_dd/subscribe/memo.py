"""A cache of values that are expensive to compute, bounded by their size."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
_OVERHEAD = 50_000
"""Bytes that are added to each value's size, so that many small values are bounded, too."""


class _Missing:
    """Distinguishes a missing value from None."""


_MISSING = _Missing()


class Memo:
    """Keeps at most ``max_bytes`` bytes. Larger and evicted values can still be found as long as somebody else
    references them. Thread-safe: callers that need a value that is being made wait for it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._made: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._held: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()
        self.bytes = 0
        """The current size."""

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The key's value, made by ``make`` if it is missing. ``size``: a value's bytes."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            found: T | _Missing = self.find(key, _MISSING)
            if not isinstance(found, _Missing):
                return found
            try:
                made = make()
                self._keep(key, made, size(made))
            finally:
                with self._lock:
                    self._making.pop(key, None)
            return made

    def find(self, key: Hashable, default: Any = None) -> Any:
        """The key's value, or ``default`` if it is missing. Never waits."""
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key][0]
            return self._held.get(key, default)

    def _keep(self, key: Hashable, made: object, size: int) -> None:
        size += _OVERHEAD
        with self._lock:
            with contextlib.suppress(TypeError):  # lists and bytes cannot be referenced weakly
                self._held[key] = made
            if size > self._max_bytes:
                return
            self.bytes += size - self._made.pop(key, (None, 0))[1]
            self._made[key] = (made, size)
            while self.bytes > self._max_bytes:
                _, (_, gone) = self._made.popitem(last=False)
                self.bytes -= gone
