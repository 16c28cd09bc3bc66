"""Which engine computes what is small: by default the driver, where it can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt_incremental_dd.core import thresholds

BOUNDS = ("LOCAL_ROWS", "TASK_ROWS", "TAKEN_ROWS", "PROBED_ROWS", "FOUND_ROWS", "JOINED_ROWS")


@contextmanager
def all_in_spark(is_so: bool = True) -> Iterator[None]:
    """Bounds that let nothing be computed on the driver, nor by one task because it is little: all is as with deltas
    that are too large for either."""
    before = {name: getattr(thresholds, name) for name in BOUNDS}
    for name in BOUNDS if is_so else ():
        setattr(thresholds, name, 0)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(thresholds, name, value)
