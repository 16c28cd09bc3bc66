"""What is remembered of a session, where none may be opened: for what is computed on the driver or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.relation.lazy_session import LazySession, SessionMemory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Unopened(LazySession):
    """Raises NotExact to whoever asks Spark."""

    def __init__(self, memory: SessionMemory) -> None:
        super().__init__(_refused, memory)

    @property
    def spark(self) -> SparkSession:
        return _refused()


def _refused() -> SparkSession:
    raise NotExact("only Spark answers this")
