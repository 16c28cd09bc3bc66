"""The command whose run is observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_incremental_dd.trace.layout import Storage


@dataclass(frozen=True)
class Command:
    """A command of dbt. ``id``: dbt's invocation id, a UUID; ``name``: ``run``, ``build``, ...; ``began``: seconds
    since the epoch; ``spark``: the session's settings in the profile; ``settings``: those under ``observe``."""

    id: str
    name: str
    project: str
    began: float
    storage: Storage
    spark: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
