"""How far a collection that follows a log has come, by its own commits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_incremental_dd.core.manifest import SourceManifest
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.sources.envelopes.replica import REPLICA
from dbt_incremental_dd.trace.layout import Storage

POSITION = "lsn"
"""The key of a progress under which it has its position in the log, a whole number."""


@dataclass(frozen=True)
class LastCommit:
    """What a collection's last commit says: its progress, empty at first, and the columns of its records."""

    progress: Mapping[str, Any] = field(default_factory=dict)
    stored: Schema | None = None

    @property
    def position(self) -> int:
        """The position in the log up to which it was taken in."""
        return int(self.progress.get(POSITION, 0))


def last_commit(storage: Storage, name: str) -> LastCommit:
    """What is known of a source."""
    place = storage.collection(name)
    log = place.log()
    manifest = place.read_manifest(log.manifest) if log else None
    if not isinstance(manifest, SourceManifest) or manifest.envelope != REPLICA.name:
        return LastCommit()
    return LastCommit(manifest.progress, manifest.records)
