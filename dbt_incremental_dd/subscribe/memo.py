"""What is expensive to make, kept for others as long as there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")
_EACH = 50_000
"""Bytes that each thing is counted with besides: many small ones take more than what they hold."""


class Memo:
    """At most ``most`` bytes; what is larger is made and not kept. Threads may share it: whoever asks for what is being
    made waits for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()
        self.bytes = 0
        """That are kept now."""

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """What belongs to the key, made where it is not there."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._made:
                    self._made.move_to_end(key)
                    found: T = self._made[key][0]
                    return found
            try:
                made = make()
                self._keep(key, made, size(made))
            finally:
                with self._lock:
                    self._making.pop(key, None)
            return made

    def _keep(self, key: Hashable, made: object, size: int) -> None:
        size += _EACH
        if size > self._most:
            return
        with self._lock:
            self._made[key] = (made, size)
            self.bytes += size
            while self.bytes > self._most:
                _, (_, gone) = self._made.popitem(last=False)
                self.bytes -= gone
