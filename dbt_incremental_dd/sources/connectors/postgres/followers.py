"""Which collections follow a slot, and how far each has come, by their own commits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.sources.connectors.database_log.last_commit import POSITION, last_commit
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError
from dbt_incremental_dd.sources.connectors.postgres.slots import Server, Slot, lsn_text
from dbt_incremental_dd.trace.layout import Storage


def followers(storage: Storage, slot: str, server: Server) -> dict[str, int] | None:
    """The position of each collection that follows the slot; None where that cannot be told."""
    found = {}
    try:
        for place in storage.collections():
            progress = last_commit(storage, place.name).progress
            if progress.get("slot") == slot and progress.get("system") == server.system:
                found[place.name] = int(progress[POSITION])
    except DifferentialError:
        return None
    return found


def require_unbroken(name: str, progress: Mapping[str, Any], slot: str, state: Slot | None, server: Server) -> None:
    """Raises PostgresError where the slot does not go on from where the source was left."""
    anew = (
        f"Take it in anew: remove its folder under state_root ({name}), then run its models with --full-refresh. "
        "Nobody else may advance or drop the slot."
    )
    if (progress["system"], progress["database"]) != (server.system, server.database):
        raise PostgresError("its table was of another server or database so far", f"Set options.url back. {anew}")
    if progress["slot"] != slot:
        raise PostgresError(
            f"it was followed through replication slot {progress['slot']} so far, now through {slot}",
            f"Set options.slot: {progress['slot']}. {anew}",
        )
    if state is None:
        raise PostgresError(f"replication slot {slot} is gone, and with it what came since", anew)
    if state.confirmed > int(progress[POSITION]):
        raise PostgresError(
            f"replication slot {slot} is at {lsn_text(state.confirmed)} already, and the source was taken in up to "
            f"{lsn_text(int(progress['lsn']))}: what is between is gone",
            anew,
        )
