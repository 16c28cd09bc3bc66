"""What a connector answers: records that have not been taken in yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.sources.partitions import Partition


@dataclass(frozen=True)
class PollResult:
    """New records (``whole``: all that there are, or with ``within`` all of these partitions), and the progress that is
    made by taking them in.

    ``key``: the columns that identify a row, where the feed itself says so.

    ``records`` has the source's columns, and perhaps some of ``records.ADDED``. ``removed`` are records that are gone,
    where the connector can tell. ``confirm`` runs after the commit and tells the feed how far it was taken in. It does
    not run where the process ends before, so that nothing may depend on it but what the feed keeps.
    """

    records: Relation
    progress: Mapping[str, Any]
    whole: bool = False
    key: tuple[str, ...] | None = None
    within: tuple[Partition, ...] | None = None
    removed: Relation | None = None
    scratch: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    confirm: Callable[[], None] = lambda: None
