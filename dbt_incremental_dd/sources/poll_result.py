"""What a connector answers: records that have not been taken in yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.sources.partitions import Partition


@dataclass(frozen=True)
class Pieces:
    """Records on the driver, a part at a time; all of a key are in one part. What ``of`` raises is no error of the
    source's, unless it is a SourceError: the records are then asked for once more, all at once."""

    of: Callable[[], Iterator[Relation]]


@dataclass(frozen=True)
class PollResult:
    """New records (``whole``: all that there are, or with ``within`` all of these partitions), and the progress that is
    made by taking them in.

    ``key``: the columns that identify a row, where the feed itself says so.

    ``records`` has the source's columns, and perhaps some of ``records.ADDED``. ``removed`` are records that are gone,
    where the connector can tell. ``confirm`` runs after the commit and tells the feed how far it was taken in. It does
    not run where the process ends before, so that nothing may depend on it but what the feed keeps. ``pieces``: the
    records, of which ``records`` then has only the columns.
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
    pieces: Pieces | None = None
