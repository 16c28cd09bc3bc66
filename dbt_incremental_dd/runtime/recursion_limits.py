"""Spark's limits on its own recursions, lifted while something that is verified needs more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LIFTED = {"spark.sql.cteRecursionLevelLimit": "1000000", "spark.sql.cteRecursionRowLimit": "-1"}
"""Spark ends a recursion after 100 iterations or a million rows; what is stored did come to its end."""


@dataclass
class _Lift:
    """How many threads of a session are inside, and what was set before the first one."""

    inside: int
    before: dict[str, str | None]


_LOCK = threading.Lock()
_lifts: WeakKeyDictionary[SparkSession, _Lift] = WeakKeyDictionary()


@contextmanager
def unlimited(spark: SparkSession) -> Iterator[None]:
    """Recursions come to their end meanwhile. Several threads may be inside at once: settings are the session's, so
    the first one lifts the limits and the last one restores them."""
    _enter(spark)
    try:
        yield
    finally:
        _leave(spark)


def _enter(spark: SparkSession) -> None:
    with _LOCK:
        lift = _lifts.get(spark)
        if lift is None:
            lift = _lifts[spark] = _Lift(0, {name: spark.conf.get(name, None) for name in _LIFTED})
            for name, value in _LIFTED.items():
                spark.conf.set(name, value)
        lift.inside += 1


def _leave(spark: SparkSession) -> None:
    with _LOCK:
        lift = _lifts[spark]
        lift.inside -= 1
        if lift.inside:
            return
        del _lifts[spark]
        for name, value in lift.before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)
