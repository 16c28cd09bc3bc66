"""Up to where a model has read its inputs.

As a rule that is the model's own latest time. It is an earlier one after a new version over the same inputs: what was
final stays as it was, so the new rows are stamped with a later time than any that the inputs are final at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.trace.log import Log


@dataclass(frozen=True)
class Position:
    """``as_of``: the moment that the contents show. ``inputs``: the latest time read of each input, by its name."""

    as_of: Time = BEGINNING
    inputs: Mapping[str, Time] = field(default_factory=dict)

    def entry(self, at: Time) -> dict[str, Any]:
        """For the manifest of the version that is stamped ``at``; nothing where all is at that time."""
        others = {name: t for name, t in self.inputs.items() if t != self.as_of}
        if self.as_of == at and not others:
            return {}
        return {"position": {"at": at, "as_of": self.as_of, "inputs": others}}


def position(log: Log, manifest: Mapping[str, Any]) -> Position:
    """Where a collection is. An entry counts for the time that it was written for only: after that, inputs without
    news have moved the frontier."""
    last = log.frontiers.last
    stored = manifest.get("position", {})
    if stored.get("at") != last:
        stored = {}
    as_of, others = stored.get("as_of", last), stored.get("inputs", {})
    names = set(manifest.get("inputs", {}).values())
    return Position(as_of, {name: others.get(name, as_of) for name in names})
