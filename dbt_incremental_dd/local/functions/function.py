"""What a function that is evaluated on the driver is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dbt_incremental_dd.local.value import Value

MANY = 1_000


@dataclass(frozen=True)
class Function:
    """``least`` and ``most``: how many arguments it takes. ``in_zone``: whether the session's time zone comes first."""

    apply: Callable[..., Value]
    least: int
    most: int
    in_zone: bool = False


Functions = Mapping[str, Function]


def fixed(apply: Callable[..., Value], count: int) -> Function:
    """A function of so many arguments."""
    return Function(apply, count, count)


def zoned(apply: Callable[..., Value], least: int, most: int | None = None) -> Function:
    """A function of the session's time zone and so many arguments."""
    return Function(apply, least, most or least, in_zone=True)
