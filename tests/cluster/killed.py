"""A process that writes a collection in object storage, and may be ended in the middle.

Arguments: ROOT OPTIONS STOP_AT ACT...; OPTIONS are JSON. STOP_AT is the point, or nothing, at which it is ended before
the acts. Each act is one of ``Writer``'s methods; ``commit@commit: before#2`` is ended when that point is reached for
the second time, ``commit>FILE`` notes the points.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from typing import Any

from dbt_incremental_dd.core import failpoints
from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.trace.compact import compact_trace, merge_recent
from dbt_incremental_dd.trace.holds import hold, release
from dbt_incremental_dd.trace.log import Log
from tests.subscribe.stored import Rows, Stored

ROUNDS = 12
"""Commits of an act, more than lie between two checkpoints."""


def change(t: int) -> Rows:
    """What time ``t`` adds; every third time also takes away what the one before has added."""
    rows: Rows = Counter({(t * 10 + i, random.Random(t).choice(["a", "b", None])): 1 for i in range(3)})
    if t > 1 and t % 3 == 0:
        rows[next(iter(change(t - 1)))] = -1
    return rows


def contents(t: int) -> Rows:
    """All up to ``t``."""
    total: Rows = Counter()
    for at in range(1, t + 1):
        total.update(change(at))
    return +total


class Writer:
    """``m.kept`` in a store. ``last``: the time up to which it was written when the process began."""

    def __init__(self, root: str, options: dict[str, str]) -> None:
        self.stored = Stored(root, options)
        self.last = max(self._log.frontiers.last, 0)

    @property
    def _log(self) -> Log:
        found = self.stored.place.log()
        assert found is not None
        return found

    def commit(self) -> None:
        for t in range(self.last + 1, self.last + ROUNDS + 1):
            self.stored.commit({t: change(t)}, t + 1)
        self.last += ROUNDS

    def advance(self) -> None:
        """The frontier alone."""
        log = self._log.advance(self.last + 1)
        log.await_entry()

    def merge(self) -> None:
        merge_recent(self.stored.place.storage, self._log)

    def compact(self) -> None:
        compact_trace(_no_spark, self.stored.place.storage, self._log, self.last - 2, ("dd_diff",))

    def vacuum(self) -> None:
        list(vacuum(self.stored.place.storage, older_than=0))

    def hold(self) -> None:
        hold(self.stored.place, "reader", self.last, "a test", until=1 << 60)
        release(self.stored.place, "reader")


def _no_spark() -> Any:
    raise AssertionError("Spark is asked")


def main() -> int:
    """Does the acts in turn."""
    failpoints.watch(sys.argv[3])
    writer = Writer(sys.argv[1], json.loads(sys.argv[2]))
    for act in sys.argv[4:]:
        told, _, noted_in = act.partition(">")
        name, _, stop_at = told.partition("@")
        failpoints.watch(stop_at, noted_in)
        getattr(writer, name)()
        failpoints.watch()
    return 0
