"""A session that is known without one: what opens it fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbt_incremental_dd.relation.lazy_session import TIME_ZONE, LazySession, SessionMemory, expected_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FUNCTIONS = "avg coalesce count explode max min rank row_number sequence sum"


class _Known(SessionMemory):
    @property
    def settings(self) -> Mapping[str, str]:
        return expected_settings({TIME_ZONE: "UTC"})

    @property
    def functions(self) -> frozenset[str]:
        return frozenset(_FUNCTIONS.split())


def no_session() -> LazySession:
    """Compiles on the driver."""
    return LazySession(_refuse, _Known())


def _refuse() -> SparkSession:
    raise AssertionError("a session is opened")
