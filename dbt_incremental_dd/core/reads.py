"""What a model's run reads of stored files and writes into them, counted where that happens.

A thread counts for whoever asked last, by ``counting``; where nobody did, nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Reads:
    """``rows``: those that were looked through, in at least one column. ``found``: those of them that were sought. The
    two differ by what lies beside the sought rows in the pages or files that were read. ``bytes``: of these pages as
    they are stored; of files that were read in another way all, so that it is an upper bound. ``written`` and
    ``bytes_written``: updates and files of the output, of states and of arrangements.
    """

    rows: int = 0
    found: int = 0
    bytes: int = 0
    written: int = 0
    bytes_written: int = 0

    def add(self, rows: int, found: int, size: int) -> None:
        """One more reading."""
        self.rows += rows
        self.found += found
        self.bytes += size


_COUNTING: ContextVar[Reads | None] = ContextVar("reads", default=None)


@contextmanager
def counting() -> Iterator[Reads]:
    """Counts what this thread reads inside."""
    reads = Reads()
    before = _COUNTING.set(reads)
    try:
        yield reads
    finally:
        _COUNTING.reset(before)


def count(rows: int, found: int, size: int) -> None:
    """Notes a reading of so many rows and bytes."""
    reads = _COUNTING.get()
    if reads is not None:
        reads.add(rows, found, size)


def count_written(rows: int, size: int) -> None:
    """Notes files of so many updates and bytes."""
    reads = _COUNTING.get()
    if reads is not None:
        reads.written += rows
        reads.bytes_written += size


def current() -> Reads:
    """What has been counted so far; all 0 where nothing is."""
    return _COUNTING.get() or Reads()
