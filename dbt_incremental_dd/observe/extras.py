"""Libraries that an extra of the package installs."""

from __future__ import annotations

from importlib.util import find_spec

from dbt_incremental_dd.core.errors import ConfigError


def require(module: str, extra: str, off: str) -> None:
    """Raises ConfigError where the library is not installed. Imports its packages, and not the module. ``off``: the
    variable that turns the observer off."""
    try:
        is_there = find_spec(module) is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise ConfigError(
            f"{extra} is configured, but its library is not installed",
            f"Install it: pip install 'dbt-incremental-dd[{extra}]', or set {off}=true.",
        )
