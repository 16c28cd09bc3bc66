"""Limits of the statements of one engine, and their enforcement."""

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
"""Interval at which running statements are checked."""
_MEMORY_SHARE = 4
"""The default limit is the machine's memory divided by this."""
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": MIB, "G": 1 << 30, "T": 1 << 40}
BY_CLIENT = "canceling statement due to user request"
BY_TIMEOUT = "canceling statement due to statement timeout"
BY_MEMORY = "out of memory: the statements of all clients take more than the server may"


def machine_memory() -> int:
    """Bytes of memory of the machine, or of this process's control group."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                found = min(found, int(file.read()))
        except (OSError, ValueError):
            continue
    return found


def parse_memory(text: str) -> int:
    """Bytes of ``512MB``, ``4GiB`` or ``25%`` of the machine's memory. Raises ConfigError for anything else."""
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
    one statement, not counting the time its client takes to read; None: no limit. ``at_once``: statements that a server
    computes at a time. ``waiting``: statements that may wait; more are refused."""

    memory: int | None = None
    seconds: float | None = 60.0
    at_once: int = 16
    waiting: int = 64

    @property
    def bytes(self) -> int:
        """The memory limit in bytes."""
        return max(machine_memory() // _MEMORY_SHARE, 16 * MIB) if self.memory is None else self.memory


class Interruptible(Protocol):
    """A DuckDB connection or cursor."""

    def interrupt(self) -> None:
        """Interrupts the computation, which then raises an error."""


class StatementRun:
    """The run of one statement. ``interrupt`` may be called from any thread, at any time."""

    def __init__(self, watchdog: Watchdog, seconds: float | None) -> None:
        self._watchdog = watchdog
        self.left = seconds
        self.reason: str | None = None
        """Why it was interrupted; None if it was not."""
        self.cursor: Interruptible | None = None

    def interrupt(self, reason: str = BY_CLIENT) -> None:
        """Interrupts the statement, now or when it next computes."""
        self.reason = self.reason or reason
        if self.cursor is not None:
            self.cursor.interrupt()

    @contextmanager
    def computing(self, cursor: Interruptible) -> Iterator[None]:
        """A block in which ``cursor`` computes for the statement. Raises QueryCanceled if it has been interrupted
        before."""
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
    """Interrupts statements that exceed their time; and all statements if the process grows by more than twice
    ``memory`` bytes, because DuckDB's own limit does not count all that it allocates."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._runs: dict[StatementRun, float | None] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._baseline = 0

    @contextmanager
    def over(self, run: StatementRun) -> Iterator[None]:
        """Watches the run while the block runs."""
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
    """This process's resident memory in bytes; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
