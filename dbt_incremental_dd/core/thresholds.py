"""Limits of what is computed on the driver, without a Spark job, and of what is stored for later runs."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dbt_incremental_dd.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """Numbers of rows, if a name does not say otherwise; each may be 0. None of them changes an answer."""

    local_rows: int = 1_000_000
    """Larger deltas stay in Spark. Smaller ones are brought to the driver, where they become literals and small
    files."""
    task_rows: int = 100_000
    """Maximum number of rows in Spark that are put into one partition, so that what follows needs no exchange."""
    summed_rows: int = 100_000
    """Maximum number of updates of a relation that are summed when it is read, even if none has been a deletion yet."""
    taken_rows: int = 200_000
    """Maximum number of a source's records that are read on the driver."""
    sorted_bytes: int = 4 << 30
    """Maximum number of bytes of a source's new Parquet files that are sorted on the driver's machine."""
    malformed_rows: int = 1_000_000
    """Maximum number of malformed records that one intake sets aside."""
    probed_rows: int = 100_000_000
    """Maximum number of stored rows that are filtered by keys on the driver."""
    probed_bytes: int = 4 << 30
    """Maximum number of bytes of their files."""
    copied_bytes: int = 16 << 30
    """Maximum number of bytes of copies, on the driver's disk, of data files in object storage; 0: there are none."""
    found_rows: int = 4_000_000
    """Maximum number of rows that such a filter returns, and that are read of an output on the driver."""
    built_rows: int = 32_000_000
    """Maximum number of a collection's rows that are read on the driver, if all that a model reads fits into a part of
    its memory: for a model's first contents, its new ones beside the stored ones, a state that is made later, and
    deltas of more than ``local_rows``."""
    joined_rows: int = 16_000_000
    """Maximum number of rows of a join on the driver."""
    crossed_rows: int = 2_000_000
    """Maximum number of pairs of rows that a join without keys compares on the driver."""
    broadcast_rows: int = 500_000
    """Maximum number of rows of a join side that is broadcast instead of shuffled."""
    kept_rows: int = 1_000
    """Spare rows that a LIMIT stores, to replace rows that are deleted."""
    recomputed_rows: int = 20_000
    """Maximum number of stored rows of a window partition that any change recomputes."""
    arranged_rows: int = 1_000_000
    """Maximum number of stored rows that a model searches for few keys in another order than theirs, before it
    stores them sorted by these keys, or counts a join's matches by them."""
    arranged_share: int = 50
    """Minimum ratio of the rows that are searched to those that are found, for the same."""
    history_rows: int = 50_000
    """A run compacts a collection of more updates than this under its RETAIN HISTORY window, if that drops a third of
    them."""

    @staticmethod
    def of(given: Mapping[str, Any], engine: str = "auto") -> Thresholds:
        """The engine's defaults with those that are given: ``spark`` computes nothing on the driver, nor by one task
        because it is little; ``auto`` what is small. Raises ConfigError, naming the key, for one that is not known, and
        for a value that is no number of rows."""
        known = [field.name for field in fields(Thresholds)]
        for name, value in given.items():
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                remedy = f"Did you mean {close[0]}?" if close else f"There are {', '.join(known)}."
                raise ConfigError(f"unknown setting thresholds.{name}", remedy)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigError(f"thresholds.{name} is {value!r}", "Give a whole number that is not negative.")
        if engine not in _ENGINES:
            raise ConfigError(f"engine is {engine!r}", f"There are {' and '.join(_ENGINES)}.")
        return Thresholds(**{**_ENGINES[engine], **given})


_DRIVERS = (
    "local_rows",
    "task_rows",
    "taken_rows",
    "sorted_bytes",
    "probed_rows",
    "found_rows",
    "built_rows",
    "joined_rows",
)
_ENGINES: Mapping[str, Mapping[str, int]] = {"auto": {}, "spark": dict.fromkeys(_DRIVERS, 0)}
