"""The times up to which a model has read its inputs.

Usually that is the model's own latest time. It is earlier after a changed query over unchanged inputs: what was final
must not change, so the new rows are stamped with a later time than any at which the inputs are final.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt_incremental_dd.core.manifest import Manifest, ModelManifest, StoredPosition
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.trace.log import Log


@dataclass(frozen=True)
class Position:
    """``as_of``: the moment that the contents show. ``inputs``: the latest time read of each input, by its name. All in
    ms."""

    as_of: Time = BEGINNING
    inputs: Mapping[str, Time] = field(default_factory=dict)

    def stored(self, at: Time) -> StoredPosition | None:
        """The entry of the manifest of the version stamped ``at``; None if everything was read up to that time."""
        others = {name: t for name, t in self.inputs.items() if t != self.as_of}
        if self.as_of == at and not others:
            return None
        return StoredPosition(at, self.as_of, others)


def position(log: Log, manifest: Manifest | None) -> Position:
    """A collection's position. The stored one is valid only for the time it was written for: after it, inputs without
    news have advanced the frontier."""
    last = log.frontiers.last
    if not isinstance(manifest, ModelManifest):
        return Position(last)
    stored = manifest.position
    if stored is None or stored.at != last:
        stored = StoredPosition(last, last, {})
    return Position(stored.as_of, {name: stored.inputs.get(name, stored.as_of) for name in manifest.inputs.values()})
