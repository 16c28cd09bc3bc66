"""``dd_now()``: the time of the run, as a TIMESTAMP. It may stand in any expression; only its value changes."""

from __future__ import annotations

import re

from dbt_incremental_dd.core.time import Time

_CALL = re.compile(
    r"""(
    \b[rR]'[^']*' | \b[rR]"[^"]*" | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*`
    | --[^\n]* | /\*.*?\*/
    ) | \bdd_now\s*\(\s*\)""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)

SOME_TIME: Time = 1_700_000_000_000
"""A time at which types are looked for: a recent one, when the rules of time zones are certain."""


def bind_now(sql: str, t: Time) -> str:
    """The text with each call of ``dd_now()`` replaced by the timestamp ``t``; strings and comments are left alone."""
    return _CALL.sub(lambda match: match[1] or f"timestamp_millis({t}L)", sql)


def uses_now(sql: str) -> bool:
    """Whether the query's answer depends on the time of the run."""
    return "dd_now" in sql.lower() and any(match[1] is None for match in _CALL.finditer(sql))
