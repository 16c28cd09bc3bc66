"""Selects small files to merge: those of one size, once there are many. However many small batches come, a row is
rewritten a few times only, and files stay few (size-tiered merging, as in log-structured merge trees)."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_incremental_dd.core.data_file import DataFile

FAN = 16
"""Number of files of a tier that are merged into one, and the ratio of rows between tiers."""
TIERS = 3
"""Larger files than those of the last tier wait for compaction."""


def mergeable(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """All files up to the largest full tier; none if no tier is full."""
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
