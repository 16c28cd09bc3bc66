"""What a model's run spends its time on: its phases, one after another, and its plan's operators within them.

A thread measures for whoever asked last, by ``profiling``; where nobody did, nothing is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

PhaseKind = Literal["inputs", "intake", "plan", "compute", "write", "commit", "relations", "table", "compaction"]
"""One of ``PHASES``, or an intake, which is within ``inputs``."""
PHASES: tuple[PhaseKind, ...] = ("inputs", "plan", "compute", "write", "commit", "relations", "table", "compaction")
"""In their order. ``inputs``: sources are taken in, and the model's lock is awaited. ``plan``: the strategy is chosen,
and the SQL compiled. ``compute``: the operators' deltas, or the query. ``write``: the output's difference to what is
stored, its files, and constraints; here Spark computes what it has put off. ``relations``: what the catalog shows.
``table``: the open table."""


@dataclass(frozen=True)
class OperatorProfile:
    """One operator of a plan within one run.

    ``number``: from 0, the output's operator first; ``parent``: the number of the one that reads it, of several the
    first; None for the output's. ``seconds``: from when it was asked until it had answered, those that it asked
    included; ``own_seconds``: without them. ``calls``: how often it was asked for its delta or its contents. Rows are
    of its delta, None where Spark has them and nobody has counted; ``rows_in``: of all its inputs together, of a
    collection the updates that are new. What it read of stored files is counted as in ``Reads``, by itself alone.
    """

    number: int
    parent: int | None
    operator: str
    detail: str
    seconds: float
    own_seconds: float
    calls: int
    rows_in: int | None
    rows_out: int | None
    rows_read: int
    rows_found: int
    bytes_read: int


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


@dataclass
class Profile:
    """``stretches``: in the order in which they end. ``operators``: empty if the plan was not rendered."""

    stretches: list[Phase] = field(default_factory=list)
    operators: tuple[OperatorProfile, ...] = ()

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of the phases that there were, by name."""
        found: dict[str, float] = {}
        for one in self.stretches:
            if one.kind in PHASES:
                found[one.kind] = found.get(one.kind, 0.0) + one.seconds
        return found


_PROFILING: ContextVar[Profile | None] = ContextVar("profile", default=None)


@contextmanager
def profiling() -> Iterator[Profile]:
    """Measures what this thread does inside."""
    profile = Profile()
    before = _PROFILING.set(profile)
    try:
        yield profile
    finally:
        _PROFILING.reset(before)


@contextmanager
def phase(kind: PhaseKind, subject: str = "") -> Iterator[PhaseNote]:
    """What is done inside is a phase, whether or not it fails. One may come several times."""
    note, began, started = PhaseNote(), time.time(), time.perf_counter()
    try:
        yield note
    finally:
        profile = _PROFILING.get()
        if profile is not None:
            profile.stretches.append(Phase(kind, subject, began, time.perf_counter() - started, note.rows))


def note_operators(operators: tuple[OperatorProfile, ...]) -> None:
    """The operators of the plan that has been rendered, in place of those of an earlier attempt."""
    profile = _PROFILING.get()
    if profile is not None:
        profile.operators = operators
