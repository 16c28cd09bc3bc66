"""Up to when a collection's open table is written: a note beside the trace, by which a run knows whether to look."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.log import Log

_NOTE = "collections/{}/table.json"


@dataclass(frozen=True)
class TableNote:
    """The table's format and its version, which has everything before ``upper`` (ms)."""

    format: str
    version: int
    upper: Time

    def has_all_of(self, log: Log) -> bool:
        """Whether the table has every update of the log."""
        return max((file.last for file in log.files), default=0) < self.upper


def noted_table(place: CollectionStore) -> TableNote | None:
    """What the last run has noted; None where that is nothing, or is damaged."""
    try:
        note = TableNote(**json.loads(place.storage.read_small(_NOTE.format(place.folder)) or ""))
    except (ValueError, TypeError):
        return None
    return note if isinstance(note.format, str) and type(note.upper) is int and type(note.version) is int else None


def note_table(place: CollectionStore, note: TableNote | None) -> None:
    """Notes it for later runs; None: there is no table any more."""
    text = "" if note is None else json.dumps(asdict(note))
    place.storage.write_small_later(_NOTE.format(place.folder), text)


def advance_note(place: CollectionStore, log: Log) -> None:
    """Notes that the table has everything up to the log's end, if it does: then compaction may forget what was."""
    note = noted_table(place)
    if note is not None and note.has_all_of(log) and note.upper < log.frontiers.upper:
        note_table(place, replace(note, upper=log.frontiers.upper))
