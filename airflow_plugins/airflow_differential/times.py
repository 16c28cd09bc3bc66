"""Times as Airflow gives them, as the engine counts them: ms since 1970, UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any


def milliseconds(given: Any) -> int:
    """A datetime, an ISO 8601 text or a number of ms. Raises ValueError where it is none of these."""
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    text = str(given).strip()
    if text.isdecimal() and len(text) > 8:
        return int(text)
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{given!r} is no time. Give an ISO 8601 timestamp, such as {{{{ data_interval_end }}}}, or ms since 1970."
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def text(t: int) -> str:
    """``2013-06-01T00:00:00+00:00``."""
    return datetime.fromtimestamp(t / 1000, UTC).isoformat()
