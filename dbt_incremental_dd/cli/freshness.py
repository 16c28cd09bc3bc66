"""Promised and present lags, as ``dbt-dd status`` prints them."""

from __future__ import annotations

from dbt_incremental_dd.core.target_lag import format_lag, lag_text
from dbt_incremental_dd.core.time import format_time, now
from dbt_incremental_dd.trace.freshness import Freshness

FRESHNESS_COLUMNS = ("target lag", "lag", "promise")


def freshness_row(found: Freshness | None) -> dict[str, object]:
    """``freshness`` of a model with a target lag, for JSON: ``lag`` in ms, ``promise`` (kept, missed, or None for
    ``downstream``), and the timestamps ``behind_since`` and ``since``, None if unknown. Without one: None."""
    if found is None:
        return {"freshness": None}
    state, since = _promise(found)
    behind = None if found.behind_since is None else format_time(found.behind_since)
    told = None if since is None else format_time(since)
    return {"freshness": {"lag": found.lag(now()), "behind_since": behind, "promise": state, "since": told}}


def freshness_cells(found: Freshness | None) -> dict[str, str]:
    """The cells of a model's row; empty without a target lag."""
    if found is None:
        return dict.fromkeys(FRESHNESS_COLUMNS, "")
    state, since = _promise(found)
    text = "" if state is None else state.upper() if state == "missed" else state
    promise = f"{text} since {format_time(since)}" if since is not None else text
    return dict(
        zip(FRESHNESS_COLUMNS, (format_lag(found.target_lag), lag_text(found.lag(now())), promise), strict=True)
    )


def _promise(found: Freshness) -> tuple[str | None, int | None]:
    """The promise's state, and since when it is so; None if there is none, or if that is unknown."""
    if isinstance(found.target_lag, str):
        return None, None
    missed = found.missed_since(now())
    return ("kept", found.kept_since) if missed is None else ("missed", missed)
