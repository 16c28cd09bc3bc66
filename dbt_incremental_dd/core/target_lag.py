"""A model's ``target_lag``: how far its contents may be behind its sources."""

from __future__ import annotations

from typing import Final

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.time import parse_duration

DOWNSTREAM: Final = "downstream"
"""The model is run when a model downstream needs it."""

TargetLag = int | str
"""Milliseconds, or ``DOWNSTREAM``."""

_HELP = f"Write an interval such as '5 minutes', or '{DOWNSTREAM}'."


def parse_target_lag(model: str, value: object) -> TargetLag | None:
    """The target lag that a model's config names: ms, ``DOWNSTREAM``, or None if it names none.

    Raises ConfigError, naming the model, for anything else: no interval, an unknown unit, zero or less.
    """
    if value is None:
        return None
    text = str(value).strip()
    if text.lower() == DOWNSTREAM:
        return DOWNSTREAM
    if isinstance(value, bool | int | float) or text.removeprefix("-").isdecimal():
        raise ConfigError(f"model {model}: target_lag is {value!r}, which has no unit", _HELP)
    if text.startswith("-"):
        raise ConfigError(f"model {model}: target_lag is {value!r}, which is negative", _HELP)
    try:
        lag = parse_duration(text)
    except ConfigError:
        units = "ms, seconds, minutes, hours, days, weeks"
        raise ConfigError(f"model {model}: target_lag is {value!r}, which is no interval in {units}", _HELP) from None
    if lag <= 0:
        raise ConfigError(f"model {model}: target_lag is {value!r}; it must be above zero", _HELP)
    return lag


def format_lag(lag: TargetLag) -> str:
    """``5 minutes``, ``90 seconds``, ``downstream``: the largest unit of which it is a whole number."""
    if isinstance(lag, str):
        return lag
    for name, ms in (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000)):
        if lag % ms == 0 and lag >= ms:
            return f"{lag // ms} {name}{'' if lag == ms else 's'}"
    return f"{lag} ms"


def lag_text(lag: int) -> str:
    """A present lag in ms, to two units at most: ``850 ms``, ``12 s``, ``3 min 5 s``, ``2 h``."""
    if lag < 1000:
        return f"{lag} ms" if lag else "0 s"
    seconds = lag // 1000
    units = (("d", seconds // 86_400), ("h", seconds // 3600 % 24), ("min", seconds // 60 % 60), ("s", seconds % 60))
    first = next(i for i, (_, count) in enumerate(units) if count)
    return " ".join(f"{count} {name}" for name, count in units[first : first + 2] if count)
