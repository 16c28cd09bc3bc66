"""From dbt's graph and configuration to the engine's request."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from dbt.adapters.differential.contract import contract_of, description_of
from dbt.adapters.differential.histories import SNAPSHOTS_OWN, history_of
from dbt.adapters.differential.settings import require_meaning
from dbt.adapters.events.logging import AdapterLogger

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.target_lag import parse_target_lag
from dbt_incremental_dd.core.time import Time, parse_duration, parse_time
from dbt_incremental_dd.open_table.registry import FORMATS
from dbt_incremental_dd.runtime.adopt import parse_adopt
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.graph import is_differential, relation_key, settings_of, source_of
from dbt_incremental_dd.sources.secrets import literal_secrets

logger = AdapterLogger("Differential")

_OURS = (
    "retain_history",
    "fallback",
    "strategy",
    "arranged_by",
    "dd_recursion_limit",
    "history",
    "output",
    "target_lag",
    "adopt",
)
_WARNED: set[tuple[str, str]] = set()
_POLICIES: dict[str, Literal["any", "fixed", "kept"]] = {
    "ignore": "any",
    "sync_all_columns": "any",
    "fail": "fixed",
    "append_new_columns": "kept",
}
"""What each ``on_schema_change`` allows: a differential model has its SQL's columns, if it may."""


def model_request(
    model: Mapping[str, Any], relation: str, sql: str, graph: Mapping[str, Any], config: Any, folder: str
) -> ModelRequest:
    """The request for one model. Raises ConfigError for a setting that cannot be honoured."""
    name = f"{model['schema']}.{model['alias']}".lower()
    settings = model["config"]
    if settings.get("materialized") == "snapshot":
        settings = {key: value for key, value in settings.items() if key not in SNAPSHOTS_OWN}
    require_meaning(name, settings, folder)
    return ModelRequest(
        name=name,
        relation=relation,
        sql=sql,
        config=replace(
            _model_config(name, settings),
            contract=contract_of(name, model),
            description=description_of(name, model),
            history=history_of(name, model["config"]),
        ),
        inputs=dict(_inputs(model, graph, folder)),
        full_refresh=_full_refresh(settings),
        unique_id=str(model["unique_id"]),
    )


def read_sources(graph: Mapping[str, Any], selected: Iterable[str], folder: str) -> tuple[SourceSpec, ...]:
    """What the selected differential models read from outside, each once. Raises ConfigError for wrong settings."""
    nodes = [graph["nodes"][name] for name in selected if name in graph["nodes"]]
    models = [node for node in nodes if is_differential(node)]
    return _specs(pair for model in models for pair in _inputs(model, graph, folder))


def sources_of(node: Mapping[str, Any], graph: Mapping[str, Any], folder: str) -> tuple[SourceSpec, ...]:
    """The sources that a node reads, through ephemeral models as well. Raises ConfigError for wrong settings."""
    return _specs(_inputs(node, graph, folder))


def _specs(inputs: Iterable[tuple[str, SourceSpec | Literal["model"]]]) -> tuple[SourceSpec, ...]:
    """The sources among them, each once, by name."""
    return tuple(spec for _, spec in sorted(dict(inputs).items()) if isinstance(spec, SourceSpec))


def run_time(given: Any) -> Time | None:
    """The var ``dd_time`` as a time, or else the environment variable ``DBT_DD_TIME``; None where neither is given."""
    found = os.environ.get("DBT_DD_TIME", "") if given in (None, "") else given
    return None if found == "" else parse_time(found)


def _full_refresh(settings: Mapping[str, Any]) -> bool:
    from dbt.flags import get_flags

    own = settings.get("full_refresh")
    return bool(own) if own is not None else bool(getattr(get_flags(), "FULL_REFRESH", False))


def _model_config(name: str, settings: Mapping[str, Any]) -> ModelConfig:
    for key in settings:
        close = difflib.get_close_matches(key, _OURS, 1, cutoff=0.8)
        if close and key not in _OURS:
            raise ConfigError(f"model {name}: unknown config {key}", f"Did you mean {close[0]}?")
    wanted = settings.get("fallback") or "recompute"
    if wanted not in ("recompute", "error"):
        raise ConfigError(f"model {name}: fallback is {wanted!r}", "It may be recompute or error.")
    fallback: Literal["recompute", "error"] = "error" if wanted == "error" else "recompute"
    strategy = settings.get("strategy") or "auto"
    if strategy not in ("auto", "delta"):
        raise ConfigError(f"model {name}: strategy is {strategy!r}", "It may be auto or delta.")
    arranged = settings.get("arranged_by") or ()
    if any(isinstance(item, str) for item in arranged):
        raise ConfigError(f"model {name}: arranged_by is a list of lists of columns", "Write [[col, ...], ...].")
    on_schema_change = settings.get("on_schema_change") or "ignore"
    if on_schema_change not in _POLICIES:
        raise ConfigError(
            f"model {name}: on_schema_change is {on_schema_change!r}", f"It may be {', '.join(_POLICIES)}."
        )
    limit = settings.get("dd_recursion_limit", ModelConfig.recursion_limit)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ConfigError(f"model {name}: dd_recursion_limit is {limit!r}", "It is a number of iterations, at least 1.")
    output = settings.get("output") or ""
    if output and output not in FORMATS:
        raise ConfigError(
            f"model {name}: output is {output!r}",
            f"It may be {' or '.join(FORMATS)}: an open table beside the collection.",
        )
    return ModelConfig(
        recursion_limit=limit,
        output=output,
        columns=_POLICIES[on_schema_change],
        retain_history=parse_duration(settings.get("retain_history") or "1 day"),
        fallback=fallback,
        strategy="delta" if strategy == "delta" else "auto",
        arranged_by=tuple(tuple(columns) for columns in arranged),
        target_lag=parse_target_lag(name, settings.get("target_lag")),
        adopt=parse_adopt(name, settings.get("adopt")),
    )


def _inputs(
    model: Mapping[str, Any], graph: Mapping[str, Any], folder: str
) -> Iterator[tuple[str, SourceSpec | Literal["model"]]]:
    """What the model reads, by the names that its SQL has for them; ephemeral models are seen through."""
    seen: set[str] = set()
    pending = list(model["depends_on"]["nodes"])
    while pending:
        unique_id = pending.pop()
        if unique_id in seen:
            continue
        seen.add(unique_id)
        if unique_id in graph["sources"]:
            yield source_spec(graph["sources"][unique_id], folder)
            continue
        node = graph["nodes"].get(unique_id)
        if node is None:
            continue
        if node["config"].get("materialized") == "ephemeral":
            pending += node["depends_on"]["nodes"]
        elif is_differential(node):
            for relation_name in (node.get("relation_name"), (node.get("defer_relation") or {}).get("relation_name")):
                if relation_name:
                    yield relation_key(relation_name), "model"


def source_spec(node: Mapping[str, Any], folder: str) -> tuple[str, SourceSpec]:
    """A source of dbt's graph, and the name that SQL has for it. Raises ConfigError for what is wrong with it."""
    _warn_of_secrets(relation_key(str(node["relation_name"])), settings_of(node))
    return source_of(node, folder)


def _warn_of_secrets(source: str, settings: Mapping[str, Any]) -> None:
    """Says, once, which options hold a secret that dbt has written to ``target/``."""
    options = settings.get("options")
    for name in literal_secrets(options) if isinstance(options, Mapping) else ():
        if (source, name) not in _WARNED:
            _WARNED.add((source, name))
            logger.warning(
                f"source {source}: options.{name} holds a secret, which dbt writes to target/ as it is. "
                f"Name the environment variable that has it instead: {name}: {{env_var: NAME}} (no template)."
            )
