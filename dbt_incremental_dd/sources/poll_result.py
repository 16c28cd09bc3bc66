"""What a connector answers: records that have not been taken in yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.sources.exchange import Records
from dbt_incremental_dd.sources.partitions import Partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE = "dd_file"
"""STRING, the path of the file that a record is from."""
CORRUPT = "dd_corrupt"
"""STRING, the text of a record that does not fit the schema; NULL for one that does."""
ORDER = "dd_order"
"""BIGINT, a record's place in its feed: of the new records of a key the last one counts."""
GONE = "dd_gone"
"""BOOLEAN, whether the record takes its key's row away; of such a record only the key's columns say anything."""
KEPT = "dd_kept"
"""STRING, places of columns, counted from 0: their values are those of the stored row with the key ``WAS``."""
WAS = "dd_was"
"""STRUCT of the key's columns."""
ADDED = (FILE, CORRUPT, ORDER, GONE, KEPT, WAS)
"""The columns that connectors may add to a source's own."""


@dataclass(frozen=True)
class PollResult:
    """New records (``whole``: all that there are, or with ``within`` all of these partitions), and the progress that is
    made by taking them in.

    ``key``: the columns that identify a row, where the feed itself says so.

    ``records`` has the source's columns, and perhaps some of ``ADDED``. ``removed`` are records that are gone, where
    the connector can tell. ``confirm`` runs after the commit and tells the feed how far it was taken in. It does not
    run where the process ends before, so that nothing may depend on it but what the feed keeps.
    """

    records: Records
    progress: Mapping[str, Any]
    whole: bool = False
    key: tuple[str, ...] | None = None
    within: tuple[Partition, ...] | None = None
    removed: DataFrame | Records | None = None
    scratch: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    confirm: Callable[[], None] = lambda: None
