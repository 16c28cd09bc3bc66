"""What connectors have in common about paths."""

from __future__ import annotations

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.config import SourceSpec

_REMOTE = 5.0
"""Seconds between looks at files elsewhere, where a look is a request."""


def check(spec: SourceSpec) -> None:
    """Raises ConfigError where there is no path."""
    if spec.path is None:
        raise ConfigError(
            f"source {spec.name}: connector {spec.connector} needs differential.path",
            "Give the folder or the file, as a path relative to the project or as a URI.",
        )


def literal(uri: str) -> str:
    """A file as Spark reads it: the name is taken literally, glob characters and all."""
    return "".join(f"\\{char}" if char in "{}[]*?\\" else char for char in uri)


def look_every(spec: SourceSpec) -> float:
    """Seconds between looks; 0 on a local disk."""
    return _REMOTE if "://" in str(spec.path) else 0.0
