"""The observers that there are, and which of them are configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from dbt_incremental_dd.observe.command import Command
from dbt_incremental_dd.observe.environment import lineage_is_wanted, traces_are_wanted
from dbt_incremental_dd.runtime.observers import Observer, Observers, Warn


class Kind(NamedTuple):
    """``is_configured``: whether it is, by its settings in the profile or otherwise; costs next to nothing.
    ``module``: has ``observer(command)``, which makes one for a run."""

    is_configured: Callable[[Mapping[str, Any]], bool]
    module: str


KINDS: Mapping[str, Kind] = {
    "openlineage": Kind(lineage_is_wanted, "dbt_incremental_dd.observe.openlineage"),
    "opentelemetry": Kind(traces_are_wanted, "dbt_incremental_dd.observe.opentelemetry"),
}


def observers_of(command: Command, warn: Warn) -> Observers:
    """Those of a run. One that cannot be made is left out, of which the user is warned."""
    found: list[Observer] = []
    for name, kind in KINDS.items():
        try:
            if kind.is_configured(command.settings.get(name, {})):
                found.append(import_module(kind.module).observer(command))
        except Exception as error:
            warn(name, f"{name}: nothing is sent: {error}")
    return Observers(found, warn)
