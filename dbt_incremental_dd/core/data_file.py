"""Data files of a trace, with what a reader needs to select them without opening them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_incremental_dd.core.time import Time

RETRACTS_ALL = "retracts-all-"
"""Begins the names of such files."""


@dataclass(frozen=True)
class DataFile:
    """One immutable Parquet file of updates.

    ``path`` is relative to the trace's root. ``first`` and ``last`` bound the updates' times (ms), inclusively.
    ``min_diff`` and ``max_diff`` bound their diffs. ``bounds`` are (minimum, maximum) of some columns without NULLs.
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
        """Whether all updates are insertions."""
        return self.min_diff >= 1

    @property
    def retracts_all(self) -> bool:
        """Whether it is what a time retracts, and that is all that was there before. Another file of the time holds
        what is there instead; a row that stays is in both."""
        return self.path.rpartition("/")[2].startswith(RETRACTS_ALL)
