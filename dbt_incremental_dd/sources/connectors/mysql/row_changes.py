"""What the log's rows of a table do: to what is taken in of it, and to tables that refer to it."""

from __future__ import annotations

from dbt_incremental_dd.sources.connectors.database_log.changes import Changes
from dbt_incremental_dd.sources.connectors.mysql.binlog import Malformed, Rows, TableMap
from dbt_incremental_dd.sources.connectors.mysql.foreign_keys import Cascade
from dbt_incremental_dd.sources.connectors.mysql.rows import RowReader


def changed(changes: Changes, found: Rows, reader: RowReader) -> None:
    """Takes the rows. Raises Malformed, and ResyncRequired as ``Changes`` does."""
    rows = reader.of(found)
    if found.what == "update":
        for old in rows:
            changes.update(old, next(rows))
    else:
        act = changes.insert if found.what == "insert" else changes.delete
        for row in rows:
            act(row)


def reaches(cascade: Cascade, map: TableMap, found: Rows) -> bool:
    """Whether these changes of a table reach another one by a foreign key."""
    if found.has_cascades:
        return False
    if found.what == "delete":
        return cascade.on_delete
    if found.what == "insert" or not cascade.on_update:
        return False
    if not found.is_full or max(cascade.places) >= found.width:
        return True
    try:
        rows = RowReader(map, None).of(found)
        return any(old[place] != new[place] for old, new in zip(rows, rows, strict=True) for place in cascade.places)
    except Malformed:  # the other table may have types that are not read
        return True
