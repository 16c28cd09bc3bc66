"""What connectors have in common about paths."""

from __future__ import annotations

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.spec import SourceSpec

_REMOTE = 5.0
"""Seconds between polls of files elsewhere, where a poll is a request."""


def require_path(spec: SourceSpec) -> None:
    """Raises ConfigError if there is no path."""
    if spec.location is None:
        raise ConfigError(
            f"source {spec.name}: connector {spec.connector} needs differential.path",
            "Give the folder or the file, as a path relative to the project or as a URI.",
        )


def require_format(spec: SourceSpec) -> None:
    """Raises ConfigError if the envelope's records are not written so."""
    if spec.envelope.formats and spec.format not in spec.envelope.formats:
        raise ConfigError(
            f"source {spec.name}: envelope {spec.envelope} reads JSON, not {spec.format}", "Set format: json."
        )


def literal(uri: str) -> str:
    """A file as Spark reads it: the name is taken literally, glob characters and all."""
    return "".join(f"\\{char}" if char in "{}[]*?\\" else char for char in uri)


def poll_interval(spec: SourceSpec) -> float:
    """Seconds between polls; 0 on a local disk."""
    return _REMOTE if "://" in str(spec.location) else 0.0
