"""The command whose run is observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Command:
    """A command of dbt. ``id``: dbt's invocation id, a UUID; ``name``: ``run``, ``build``, ...; ``began``: seconds
    since the epoch; ``root``: the state root; ``settings``: those of the profile under ``observe``, by observer."""

    id: str
    name: str
    project: str
    began: float
    root: str
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
