"""Which runs of models ask Spark for anything: in a process without a session, each of these would open one."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbt_incremental_dd.relation.lazy_session import LazySession, SessionMemory, functions_of, settings_of
from dbt_incremental_dd.runtime.session import asked_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ListeningSession(LazySession):
    """As one that is never open, of a project that has been run before; it notes who asks, for each thread."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(lambda: spark, _Known(spark))
        self._noted = threading.local()

    @property
    def asked(self) -> list[str]:
        """By whom, in this thread."""
        noted: list[str] = self._noted.__dict__.setdefault("asked", [])
        return noted

    @property
    def is_open(self) -> bool:
        """Never."""
        return False

    @property
    def spark(self) -> SparkSession:
        """The session that is open all the same."""
        self.asked.append(asked_by())
        return super().spark


class _Known(SessionMemory):
    def __init__(self, spark: SparkSession) -> None:
        self._settings, self._functions = settings_of(spark), functions_of(spark)

    @property
    def settings(self) -> Mapping[str, str]:
        return self._settings

    @property
    def functions(self) -> frozenset[str]:
        return self._functions

    @property
    def opening(self) -> float:
        return 8.0

    def views(self, schema: str) -> frozenset[str]:
        return _Everything()

    def has_table(self, relation: str) -> bool:
        return True


class _Everything(frozenset[str]):
    def __contains__(self, name: object) -> bool:
        return True
