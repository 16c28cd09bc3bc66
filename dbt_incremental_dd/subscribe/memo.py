"""What is expensive to make, kept for others as long as there is room."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
_OVERHEAD = 50_000
"""Bytes that each thing is counted with besides: many small ones take more than what they hold."""


class _Missing:
    """What stands for nothing."""


_MISSING = _Missing()


class Memo:
    """At most ``most`` bytes. What is larger, or has had to make room, is there as long as anybody holds it, and
    belongs to all who ask for it meanwhile. Threads may share it: whoever asks for what is being made waits for it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._made: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._held: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()
        self.bytes = 0
        """That are kept now."""

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """What belongs to the key, made where it is not there."""
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
        """What belongs to the key; ``default`` where it has not been made, or is gone. Waits for nothing."""
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key][0]
            return self._held.get(key, default)

    def _keep(self, key: Hashable, made: object, size: int) -> None:
        size += _OVERHEAD
        with self._lock:
            with contextlib.suppress(TypeError):  # lists and bytes cannot be held weakly
                self._held[key] = made
            if size > self._max_bytes:
                return
            self.bytes += size - self._made.pop(key, (None, 0))[1]
            self._made[key] = (made, size)
            while self.bytes > self._max_bytes:
                _, (_, gone) = self._made.popitem(last=False)
                self.bytes -= gone
