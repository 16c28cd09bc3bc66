"""Times as Airflow gives them, as the engine counts them: ms since 1970, UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any

INTERVAL_END = "{{ data_interval_end | default(dag_run.run_after, true) }}"
"""A template: the end of the data interval; of a run that has none, because an asset or a person has started it, the
time at which it was to start. Either stays what it is when tasks are cleared."""


def milliseconds(given: Any) -> int:
    """Of a datetime or an ISO 8601 text that names its zone, or of a number of ms. Raises ValueError if it is none
    of these; a time without a zone is not guessed at."""
    found = utc(given)
    if not _names_a_zone(given):
        raise ValueError(f"{given!r} names no time zone. Write it like 2013-06-01T00:00:00+00:00.")
    return found


def utc(given: Any) -> int:
    """The same, where what names no zone is UTC, as it is in sources."""
    from dbt_incremental_dd.core.errors import ConfigError
    from dbt_incremental_dd.core.time import parse_time

    try:
        return parse_time(given if isinstance(given, int | datetime) else str(given))
    except ConfigError as error:
        raise ValueError(str(error)) from None


def text(t: int) -> str:
    """``2013-06-01 00:00:00``, in UTC."""
    from dbt_incremental_dd.core.time import format_time

    return format_time(t)


def _names_a_zone(given: Any) -> bool:
    if isinstance(given, int) or str(given).strip().isdecimal():
        return True
    moment = given if isinstance(given, datetime) else datetime.fromisoformat(str(given).strip())
    return moment.tzinfo is not None
