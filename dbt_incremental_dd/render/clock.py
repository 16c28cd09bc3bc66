"""Measures the operators of a plan while they ask each other."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

from dbt_incremental_dd.core.reads import Reads, current


@dataclass
class OperatorTime:
    """Seconds with and without those of the operators that it asked; what it read by itself."""

    seconds: float = 0.0
    own_seconds: float = 0.0
    calls: int = 0
    active: int = 0
    """How many of its calls are under way: an operator may be asked again by one that it asks."""
    rows_read: int = 0
    rows_found: int = 0
    bytes_read: int = 0


class OperatorClock:
    """Time and readings belong to the operator that was entered last. For one thread."""

    def __init__(self) -> None:
        self._times: dict[int, OperatorTime] = {}
        self._stack: list[tuple[OperatorTime, float]] = []
        self._at = 0.0
        self._reads = Reads()

    def enter(self, operator: int) -> None:
        """The operator of that id is asked."""
        now, time = self._switch(), self._times.setdefault(operator, OperatorTime())
        time.calls += 1
        time.active += 1
        self._stack.append((time, now))

    def leave(self) -> None:
        """It has answered."""
        now = self._switch()
        time, entered = self._stack.pop()
        time.active -= 1
        if not time.active:
            time.seconds += now - entered

    def of(self, operator: int) -> OperatorTime:
        """What the operator took; zeros if nobody asked it."""
        return self._times.get(operator, OperatorTime())

    def _switch(self) -> float:
        """What has been since the last switch was the operator's on top of the stack."""
        now, reads = perf_counter(), current()
        if self._stack:
            top = self._stack[-1][0]
            top.own_seconds += now - self._at
            top.rows_read += reads.rows - self._reads.rows
            top.rows_found += reads.found - self._reads.found
            top.bytes_read += reads.bytes - self._reads.bytes
        self._at, self._reads = now, Reads(reads.rows, reads.found, reads.bytes)
        return now
