"""What a model's run spends its time on, noted where it is spent.

A thread notes for whoever asked last, by ``noting``; where nobody did, nothing is noted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

PhaseKind = Literal["inputs", "intake", "plan", "compute", "write", "commit", "relations", "table", "compaction"]
"""See ``PHASES`` of ``core/profile.py``. An intake is within ``inputs``."""


@dataclass(frozen=True)
class Phase:
    """One stretch of a model's run. ``subject``: the source of an intake; empty where it is the model itself.
    ``began``: seconds since the epoch. ``rows``: updates that an intake has added; 0 in other phases."""

    kind: PhaseKind
    subject: str
    began: float
    seconds: float
    rows: int = 0


@dataclass
class PhaseNote:
    """What is known of a phase only as it goes on; see ``Phase``."""

    rows: int = 0


_NOTED: ContextVar[list[Phase] | None] = ContextVar("phases", default=None)


@contextmanager
def noting() -> Iterator[list[Phase]]:
    """The phases that this thread goes through inside, in the order in which they end."""
    phases: list[Phase] = []
    before = _NOTED.set(phases)
    try:
        yield phases
    finally:
        _NOTED.reset(before)


@contextmanager
def phase(kind: PhaseKind, subject: str = "") -> Iterator[PhaseNote]:
    """What is done inside is a phase, whether or not it fails."""
    note, began, started = PhaseNote(), time.time(), time.monotonic()
    try:
        yield note
    finally:
        phases = _NOTED.get()
        if phases is not None:
            phases.append(Phase(kind, subject, began, time.monotonic() - started, note.rows))
