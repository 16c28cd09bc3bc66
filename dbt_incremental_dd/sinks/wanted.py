"""What a command, or an exposure of the project, says of a sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from dbt_incremental_dd.core.errors import ConfigError


@dataclass(frozen=True)
class Wanted:
    """``target``: a topic, a table, a URL or a folder. ``key``: columns each of whose values has one row. ``options``:
    the sink's own. The others are settings of some sinks; None if they are not given."""

    target: str
    key: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    form: str | None = None
    rejected: Path | None = None
    format: str | None = None

    def require_only(self, kind: str, *settings: str) -> None:
        """Raises ConfigError for a setting that is given, and is none of these, which the sink of this kind has."""
        for one in fields(self):
            if one.name not in ("target", *settings) and getattr(self, one.name):
                raise ConfigError(
                    f"publishing to {kind} {self.target} takes no {one.name}",
                    f"It takes {', '.join(settings)}.",
                )
