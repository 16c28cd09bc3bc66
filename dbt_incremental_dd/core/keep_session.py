"""``keep_session`` of the profile: how long a local session stays for other commands."""

from __future__ import annotations

from dbt_incremental_dd.core import file_lock
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import parse_duration

_REMEDY = "Write a number and a unit, such as keep_session: 10 minutes, or leave it out."


def kept_seconds(given: object) -> float:
    """Seconds; 0 if the session ends with its process. Raises ConfigError for what is no duration with a unit."""
    text = "" if given is None else str(given).strip()
    if not text:
        return 0.0
    try:
        milliseconds = parse_duration(text)
    except ConfigError as error:
        raise ConfigError(f"keep_session is {given!r}", _REMEDY) from error
    return milliseconds / 1000 if file_lock.IS_POSSIBLE else 0.0
