"""How much the statements of one engine may take, and the end of those that take more."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from dbt_incremental_dd.core.errors import ConfigError, QueryCanceled

MIB = 1 << 20
_CHECK_SECONDS = 0.05
"""Seconds between looks at what is being computed."""
_MEMORY_SHARE = 4
"""One part in so many of the machine's memory, by default."""
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": MIB, "G": 1 << 30, "T": 1 << 40}
BY_CLIENT = "canceling statement due to user request"
BY_TIMEOUT = "canceling statement due to statement timeout"
BY_MEMORY = "out of memory: the statements of all clients take more than the server may"


def machine_memory() -> int:
    """Bytes of the machine, or of the control group that this process is in."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                found = min(found, int(file.read()))
        except (OSError, ValueError):
            continue
    return found


def parse_memory(text: str) -> int:
    """Bytes of ``512MB``, ``4GiB`` or ``25%`` of the machine. Raises ConfigError for what is none of these."""
    plain = text.strip().upper().removesuffix("IB").removesuffix("B")
    number, unit = (plain[:-1], plain[-1:]) if plain[-1:] in ("K", "M", "G", "T", "%") else (plain, "")
    try:
        found = float(number) * (machine_memory() / 100 if unit == "%" else _UNITS[unit])
        if not 16 * MIB <= found < 2**63:
            raise ValueError
    except (ValueError, OverflowError):
        raise ConfigError(f"{text!r} is no amount of memory", "Write 4GB or 25%; at least 16MB.") from None
    return int(found)


@dataclass(frozen=True)
class Limits:
    """``memory``: bytes for all statements together, by default a quarter of the machine's. ``seconds``: for computing
    one statement, None for any number; time that its client takes to read is not counted. ``at_once``: statements that
    a server computes at a time; ``waiting``: those that wait for their turn, beyond which more are refused."""

    memory: int | None = None
    seconds: float | None = 60.0
    at_once: int = 16
    waiting: int = 64

    @property
    def bytes(self) -> int:
        """The memory."""
        return max(machine_memory() // _MEMORY_SHARE, 16 * MIB) if self.memory is None else self.memory


class Interruptible(Protocol):
    """What DuckDB computes with."""

    def interrupt(self) -> None:
        """Ends what is being computed, with an error."""


class StatementRun:
    """One statement. ``interrupt`` may come from any thread, at any time."""

    def __init__(self, watchdog: Watchdog, seconds: float | None) -> None:
        self._watchdog = watchdog
        self.left = seconds
        self.reason: str | None = None
        """Why it has been interrupted, once it has."""
        self.cursor: Interruptible | None = None

    def interrupt(self, reason: str = BY_CLIENT) -> None:
        """It computes no more."""
        self.reason = self.reason or reason
        if self.cursor is not None:
            self.cursor.interrupt()

    @contextmanager
    def computing(self, cursor: Interruptible) -> Iterator[None]:
        """A block in which ``cursor`` computes for it. Raises QueryCanceled if it was interrupted before."""
        self.cursor = cursor
        self._require()
        begin = time.monotonic()
        try:
            with self._watchdog.over(self):
                yield
        finally:
            self.cursor = None
            if self.left is not None:
                self.left -= time.monotonic() - begin

    def _require(self) -> None:
        if self.left is not None and self.left <= 0:
            self.reason = self.reason or BY_TIMEOUT
        if self.reason is not None:
            raise QueryCanceled(self.reason)


class Watchdog:
    """Interrupts statements that compute for too long; and all of them where the process has grown by more than twice
    ``memory`` bytes: not all that DuckDB takes is counted by its own limit."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._runs: dict[StatementRun, float | None] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._baseline = 0

    @contextmanager
    def over(self, run: StatementRun) -> Iterator[None]:
        """As long as the block runs."""
        with self._changed:
            if not self._runs:
                self._baseline = _resident()
            self._runs[run] = None if run.left is None else time.monotonic() + run.left
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="query-watch", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._runs[run]

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._runs:
                    if not self._changed.wait(timeout=10) and not self._runs:
                        self._thread = None
                        return
                self._interrupt()
            time.sleep(_CHECK_SECONDS)

    def _interrupt(self) -> None:
        now = time.monotonic()
        for run, deadline in self._runs.items():
            if run.reason is not None:
                run.interrupt()
            elif deadline is not None and now > deadline:
                run.interrupt(BY_TIMEOUT)
        if _resident() - self._baseline > 2 * self._memory:
            for run in self._runs:
                run.interrupt(BY_MEMORY)


def _resident() -> int:
    """Bytes of memory that this process has; 0 if the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
