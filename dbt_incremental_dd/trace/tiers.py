"""Selects small files to merge: those of one size, once there are many. However many small batches come, a row is
rewritten a few times only, and files stay few (size-tiered merging, as in log-structured merge trees)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dbt_incremental_dd.core.data_file import DataFile

FAN = 16
"""Number of files of a tier that are merged into one, and the ratio of rows between tiers."""
TIERS = 3
"""Larger files than those of the last tier wait for compaction."""
_FEW = 100_000
"""Updates that are left as they are."""


def mergeable(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """All files up to the largest full tier; none if no tier is full."""
    tiers: list[list[DataFile]] = [[] for _ in range(TIERS)]
    for file in files:
        tier = _tier(file.rows)
        if tier < TIERS:
            tiers[tier].append(file)
    full = [number for number, tier in enumerate(tiers) if len(tier) >= FAN]
    return tuple(file for tier in tiers[: full[-1] + 1] for file in tier) if full else ()


def has_outgrown(files: Sequence[DataFile]) -> bool:
    """Whether the updates of a trace without history are as many as its first batch, and more than a few: then all of
    them are summed up into a new first batch. So an update is rewritten a few times only, and what is read stays in
    proportion to the rows, also where each run changes most of them."""
    begin = min((file.first for file in files), default=0)
    first = sum(file.rows for file in files if file.first == begin)
    return sum(file.rows for file in files) - first >= max(first, _FEW)


def _tier(rows: int) -> int:
    tier = 0
    while rows >= FAN:
        rows, tier = rows // FAN, tier + 1
    return tier
