"""A query's delta as its history's."""

from __future__ import annotations

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.history.by_key import Versions
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.history.of_rows import intervals_of_rows
from dbt_incremental_dd.history.stored import KnownVersions
from dbt_incremental_dd.relation.relation import Relation


def intervals(
    history: History, change: Relation | None, stored: KnownVersions | None, *, at: Time, model: str
) -> Relation | None:
    """What a change of the query's rows, consolidated, at the time ``at`` (ms) makes of what is stored of its history;
    None where nothing changes. Raises QueryError for rows that can be no versions."""
    if change is None or change.is_empty:
        return None
    query = tuple(name for name in change.names if name != DIFF)
    if history.key:
        return Versions(history, query, at, model).delta(change, stored)
    return intervals_of_rows(history, change, stored, at)
