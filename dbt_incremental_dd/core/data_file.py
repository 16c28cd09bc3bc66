"""Data files of a trace, described well enough that a reader can choose them without opening them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_incremental_dd.core.time import Time


@dataclass(frozen=True)
class DataFile:
    """One immutable Parquet file of updates.

    ``path`` is relative to the trace's root. ``first`` and ``last`` bound the updates' times, both inclusive.
    ``min_diff >= 1`` says: nothing but insertions. ``bounds`` are (minimum, maximum) of columns that have them;
    a column with NULLs has none.
    """

    path: str
    rows: int
    bytes: int
    first: Time
    last: Time
    min_diff: int
    max_diff: int
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def inserts_only(self) -> bool:
        """Whether every update in it is an insertion."""
        return self.min_diff >= 1
