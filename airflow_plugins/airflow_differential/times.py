"""Airflow's times as the engine's: ms since 1970, UTC."""

from __future__ import annotations

from datetime import datetime
from typing import Any

INTERVAL_END = "{{ data_interval_end | default(dag_run.run_after, true) }}"
"""A template: the end of the data interval or, for runs without one, which an asset or a person has started, the
scheduled start. Neither changes when tasks are cleared."""


def milliseconds(given: Any) -> int:
    """The ms of a datetime or ISO 8601 text with a time zone, or of a number of ms. Raises ValueError for anything
    else, and for a time without a zone."""
    found = utc(given)
    if not _names_a_zone(given):
        raise ValueError(f"{given!r} names no time zone. Write it like 2013-06-01T00:00:00+00:00.")
    return found


def utc(given: Any) -> int:
    """As ``milliseconds``, but a time without a zone is UTC, as in sources."""
    from dbt_incremental_dd.core.errors import ConfigError
    from dbt_incremental_dd.core.time import parse_time

    try:
        return parse_time(given if isinstance(given, int | datetime) else str(given))
    except ConfigError as error:
        raise ValueError(str(error)) from None


def clock() -> int:
    """The clock's time in ms."""
    from dbt_incremental_dd.core.time import now

    return now()


def text(t: int) -> str:
    """``2013-06-01 00:00:00``, in UTC."""
    from dbt_incremental_dd.core.time import format_time

    return format_time(t)


def _names_a_zone(given: Any) -> bool:
    if isinstance(given, int) or str(given).strip().isdecimal():
        return True
    moment = given if isinstance(given, datetime) else datetime.fromisoformat(str(given).strip())
    return moment.tzinfo is not None
