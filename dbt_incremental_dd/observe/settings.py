"""``observe`` of the profile: what observers are told there, by observer."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.core.errors import ConfigError

KNOWN: Mapping[str, tuple[str, ...]] = {
    "openlineage": ("url", "namespace"),
    "opentelemetry": ("endpoint", "service_name"),
}
"""The settings of each observer."""


def observe_settings(given: Any) -> Mapping[str, Mapping[str, str]]:
    """The settings as text, by observer. Raises ConfigError, naming the setting, for one that is not known."""
    return {name: _settings(name, own) for name, own in _mapping("observe", given, tuple(KNOWN)).items()}


def _settings(name: str, given: Any) -> Mapping[str, str]:
    found = _mapping(f"observe.{name}", given, KNOWN[name])
    for key, value in found.items():
        if not isinstance(value, str):
            raise ConfigError(f"observe.{name}.{key} is {value!r}", "Give a text.")
    return found


def _mapping(path: str, given: Any, known: tuple[str, ...]) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigError(f"{path} is {given!r}", f"Give a mapping of {', '.join(known)}.")
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, 1)
            remedy = f"Did you mean {close[0]}?" if close else f"There are {', '.join(known)}."
            raise ConfigError(f"unknown setting {path}.{name}", remedy)
    return given
