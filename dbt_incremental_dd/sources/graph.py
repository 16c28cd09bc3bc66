"""dbt's graph: which of its nodes are kept up to date here, and a source's settings, wherever dbt lets them be
written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.sources.config import SourceSpec, parse_source

_LAKE_FORMATS = ("delta", "iceberg", "hudi")
"""A snapshot that is one of these tables is dbt-spark's."""


def is_differential(node: Mapping[str, Any]) -> bool:
    """Whether a node is kept up to date by its inputs' changes: a differential model, or a snapshot."""
    config = node["config"]
    if config.get("materialized") == "snapshot":
        return str(config.get("file_format") or "").lower() not in _LAKE_FORMATS
    return bool(config.get("materialized") == "differential")


def source_of(node: Mapping[str, Any], folder: str) -> tuple[str, SourceSpec]:
    """A source's spec, and the name that SQL has for it. ``folder``: the project's. Raises ConfigError for settings
    that cannot be honoured."""
    relation = str(node["relation_name"])
    name = relation_key(relation)
    columns = {column["name"]: column.get("data_type") for column in (node.get("columns") or {}).values()}
    return name, parse_source(name, relation, settings_of(node), columns, folder)


def settings_of(node: Mapping[str, Any]) -> dict[str, Any]:
    """What the source's own ``config: meta``, its ``meta`` and that of all its tables say, the nearest first."""
    wide = (node.get("source_meta") or {}).get("differential") or {}
    meta = (node.get("meta") or {}).get("differential") or {}
    own = ((node.get("config") or {}).get("meta") or {}).get("differential") or {}
    return {**wide, **meta, **own}


def relation_key(relation_name: str) -> str:
    """A relation's name as the engine has it: without quotes, in small letters."""
    return ".".join(part.strip("`") for part in relation_name.split(".")).lower()
