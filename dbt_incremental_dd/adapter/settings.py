"""dbt's own configs of a model that a differential model cannot honour: refused, or warned of.

A config that would change the rows, or that is written for one model, is refused. One that projects set for all their
models, and that changes no row, has a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbt.adapters.differential.warnings import warn_once

from dbt_incremental_dd.core.errors import ConfigError

_FROM_SQL = "Remove it: what has changed is worked out from the SQL itself."
_LAYOUT = "Remove it. `arranged_by: [[column, ...]]` sorts the files, and reads skip those that have nothing for them."
_REFUSED = {
    "unique_key": f"{_FROM_SQL} A `primary_key` or `unique` constraint in a contract guards keys.",
    "merge_update_columns": _FROM_SQL,
    "merge_exclude_columns": _FROM_SQL,
    "incremental_predicates": _FROM_SQL,
    "predicates": _FROM_SQL,
    "begin": "Remove it, and leave rows of before out by the SQL: WHERE ts >= ...",
    "batch_size": _FROM_SQL,
    "lookback": "Remove it: records that come late are taken in, however late.",
    "partition_by": _LAYOUT,
    "clustered_by": _LAYOUT,
    "buckets": _LAYOUT,
    "indexes": _LAYOUT,
    "sql_header": "Write its statements as a `pre_hook`, or in `on-run-start`.",
    "column_types": "Remove it, and cast the columns in the SQL.",
    "database": "Remove it: dbt-spark has schemas alone. Set `schema`.",
}
_WITHOUT_EFFECT = {
    "file_format": "collections are Parquet files with a Delta log",
    "location_root": "collections lie under `state_root`, which the profile names",
    "options": "they are a table's, and the relation is a view",
    "incremental_strategy": "what has changed is worked out from the SQL itself",
    "concurrent_batches": "there are no batches",
    "on_configuration_change": "it is about materialized views of the database",
}
_DEFAULTS: Mapping[str, Any] = {"lookback": 1, "on_configuration_change": "apply"}


def require_meaning(name: str, settings: Mapping[str, Any], project: str) -> None:
    """Raises ConfigError for a config that cannot be honoured; warns once of each that has no effect."""
    for key in refused(settings):
        raise ConfigError(f"model {name}: {key} means nothing to a differential model", _REFUSED[key])
    for key, why in _WITHOUT_EFFECT.items():
        if _is_set(settings, key):
            warn_once(
                (project, key, str(settings[key])),
                f"{key}: {_text(settings[key])} has no effect on differential models such as {name}: {why}. "
                "It is ignored in all of them.",
            )


def refused(settings: Mapping[str, Any]) -> Iterator[str]:
    """Those that are set and refused."""
    return (key for key in _REFUSED if _is_set(settings, key))


def _is_set(settings: Mapping[str, Any], key: str) -> bool:
    value = settings.get(key)
    return bool(value) and _text(value) != str(_DEFAULTS.get(key))


def _text(value: Any) -> str:
    return str(getattr(value, "value", value))
