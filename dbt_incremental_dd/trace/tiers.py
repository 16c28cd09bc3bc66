"""Which small files to merge: those of one size, when there are many of them, so that however many small batches come,
a row is written again a few times and files stay few (size-tiered merging, as log-structured merge trees have it)."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_incremental_dd.core.data_file import DataFile

FAN = 16
"""Files of one tier that are merged into one; and how many times the rows of the tier below its files have."""
TIERS = 3
"""Files that are larger than those of the last tier wait for compaction."""


def mergeable(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """All files up to the largest tier that is full; none if no tier is."""
    tiers: list[list[DataFile]] = [[] for _ in range(TIERS)]
    for file in files:
        tier = _tier(file.rows)
        if tier < TIERS:
            tiers[tier].append(file)
    full = [number for number, tier in enumerate(tiers) if len(tier) >= FAN]
    return tuple(file for tier in tiers[: full[-1] + 1] for file in tier) if full else ()


def _tier(rows: int) -> int:
    tier = 0
    while rows >= FAN:
        rows, tier = rows // FAN, tier + 1
    return tier
