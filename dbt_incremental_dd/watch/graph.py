"""The models of a parsed project as a schedule sees them: target lags, and what each reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt_incremental_dd.core.target_lag import TargetLag, parse_target_lag
from dbt_incremental_dd.sources.graph import is_differential


@dataclass(frozen=True)
class WatchedModel:
    """``collection``: ``schema.identifier``. ``selector``: in dbt's syntax. ``inputs``: unique ids of sources and of
    other watched models; ephemeral models, and those that are not watched, are replaced by what they read.
    ``target``: None if nothing is promised. ``is_stored``: it is a collection; other relations are dbt-spark's."""

    collection: str
    selector: str
    inputs: tuple[str, ...]
    target: TargetLag | None
    is_stored: bool


def watched_models(
    models: Iterable[Any], nodes: Mapping[str, Any], sources: Mapping[str, Any]
) -> dict[str, WatchedModel]:
    """Those of dbt's nodes that are relations of their own, by unique id. Raises ConfigError, naming the model, for an
    invalid ``target_lag``."""
    chosen = {node.unique_id: node for node in models if node.config.materialized != "ephemeral"}
    return {id: _watched(node, chosen, nodes, sources) for id, node in chosen.items()}


def _watched(
    node: Any, chosen: Mapping[str, Any], nodes: Mapping[str, Any], sources: Mapping[str, Any]
) -> WatchedModel:
    name = f"{node.schema}.{node.alias}".lower()
    return WatchedModel(
        collection=name,
        selector=".".join(node.fqn),
        inputs=_inputs(node, chosen, nodes, sources),
        target=parse_target_lag(name, node.config.get("target_lag")),
        is_stored=is_differential({"config": node.config}),
    )


def _inputs(
    node: Any, chosen: Mapping[str, Any], nodes: Mapping[str, Any], sources: Mapping[str, Any]
) -> tuple[str, ...]:
    found: set[str] = set()
    seen: set[str] = set()
    pending = list(node.depends_on.nodes)
    while pending:
        id = pending.pop()
        if id in seen:
            continue
        seen.add(id)
        if id in sources or id in chosen:
            found.add(id)
        elif id in nodes:
            pending += getattr(nodes[id].depends_on, "nodes", ())
    return tuple(sorted(found))
