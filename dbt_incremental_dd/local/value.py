"""What an expression evaluates to on the driver, and how it gives up."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from dbt_incremental_dd.core.types import Type

_LOG = logging.getLogger(__name__)
_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)


class NotExact(Exception):
    """What Arrow computes might not be what Spark does: it is left to Spark."""


@contextmanager
def giving_up(what: object) -> Iterator[None]:
    """Raises NotExact after a mistake in this package, which is told, and fails no run: Spark computes it. ``what``: is
    computed, as a message names it."""
    try:
        yield
    except _MISTAKES as mistake:
        if type(mistake).__module__ != "builtins":  # a library's error, or one of ours, for the user
            raise
        told = f"{what}: {type(mistake).__name__}: {mistake}"
        _LOG.warning("could not be computed on the driver, and is left to Spark: %s", told)
        raise NotExact(told) from mistake


@dataclass(frozen=True)
class Value:
    """Values of a column, or one constant. ``type``: Spark's; VOID is that of NULL itself."""

    data: pa.ChunkedArray | pa.Scalar
    type: Type


class Constants(Protocol):
    """Values of expressions without columns, as a session has them."""

    @property
    def has_usual_types(self) -> bool:
        """Whether the session gives values and types as Spark does by default."""

    @property
    def time_zone(self) -> str:
        """The session's time zone, by the name that it was set with."""

    def value_of(self, sql: str) -> Value:
        """The expression's value. Raises NotExact if it has none, such as that of a division by zero."""
