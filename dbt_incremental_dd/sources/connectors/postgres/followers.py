"""Which collections follow a slot, and how far each has come, by their own commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.manifest import SourceManifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.connectors.postgres.connection import PostgresError
from dbt_incremental_dd.sources.connectors.postgres.slots import Server, Slot, lsn_text
from dbt_incremental_dd.sources.connectors.postgres.tables import PostgresTable
from dbt_incremental_dd.sources.envelopes.replica import REPLICA
from dbt_incremental_dd.trace.layout import Storage


@dataclass(frozen=True)
class LastCommit:
    """What a collection's last commit says: its progress, empty at first, and the columns of its records."""

    progress: Mapping[str, Any] = field(default_factory=dict)
    stored: Schema | None = None

    @property
    def position(self) -> int:
        """The position in the log up to which it was taken in."""
        return int(self.progress.get("lsn", 0))


def last_commit(storage: Storage, name: str) -> LastCommit:
    """What is known of a source."""
    place = storage.collection(name)
    log = place.log()
    manifest = place.read_manifest(log.manifest) if log else None
    if not isinstance(manifest, SourceManifest) or manifest.envelope != REPLICA.name:
        return LastCommit()
    return LastCommit(manifest.progress, manifest.records)


def followers(storage: Storage, slot: str, server: Server) -> dict[str, int] | None:
    """The position of each collection that follows the slot; None where that cannot be told."""
    found = {}
    try:
        for place in storage.collections():
            progress = last_commit(storage, place.name).progress
            if progress.get("slot") == slot and progress.get("system") == server.system:
                found[place.name] = int(progress["lsn"])
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
    if state.confirmed > int(progress["lsn"]):
        raise PostgresError(
            f"replication slot {slot} is at {lsn_text(state.confirmed)} already, and the source was taken in up to "
            f"{lsn_text(int(progress['lsn']))}: what is between is gone",
            anew,
        )


def require_columns(table: PostgresTable, stored: Schema | None) -> None:
    """Raises PostgresError where the columns are not those that are stored."""
    if stored is None or stored == table.records:
        return
    was, now = ({column.name: column.type for column in schema} for schema in (stored, table.records))
    changes = [f"{name} came" for name in now if name not in was]
    changes += [f"{name} went" for name in was if name not in now]
    changes += [f"{name} was {was[name]} and is {now[name]}" for name in now if was.get(name, now[name]) != now[name]]
    raise PostgresError(
        f"the columns of {table.sql} changed: {', '.join(changes) or 'their order'}",
        "Take it in anew: remove its folder under state_root, then run the models on it with --full-refresh.",
    )
