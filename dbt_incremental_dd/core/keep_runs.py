"""``keep_runs`` of the profile: for how long the rows stay that tell of models' runs."""

from __future__ import annotations

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import parse_duration

DEFAULT = "30 days"
_REMEDY = "Write a number and a unit, such as keep_runs: 30 days; or keep_runs: false, and runs are not noted."


def kept_ms(given: object) -> int:
    """Milliseconds; 0 if runs are not noted. Raises ConfigError for what is neither a duration nor false."""
    if given is False or str(given).strip().lower() == "false":
        return 0
    try:
        found = parse_duration(str(DEFAULT if given is None else given))
    except ConfigError as error:
        raise ConfigError(f"keep_runs is {given!r}", _REMEDY) from error
    if found <= 0:
        raise ConfigError(f"keep_runs is {given!r}", _REMEDY)
    return found
