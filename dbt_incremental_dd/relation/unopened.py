"""What is known of a session that nobody may ask: for what is computed on the driver or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.relation.lazy_session import Dialect, LazySession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Unopened(LazySession):
    """Its settings are those of ``session``, or what is remembered of them if that is not open. Raises NotExact to
    whoever asks Spark for more."""

    def __init__(self, session: LazySession) -> None:
        super().__init__(_refused, session.memory)
        self._of = session

    @property
    def spark(self) -> SparkSession:
        return _refused()

    @property
    def dialect(self) -> Dialect:
        return self._of.dialect if self._of.is_open else super().dialect

    @property
    def has_usual_rules(self) -> bool:
        return self._of.has_usual_rules if self._of.is_open else super().has_usual_rules

    @property
    def functions(self) -> frozenset[str]:
        return self._of.functions if self._of.is_open else super().functions


def _refused() -> SparkSession:
    raise NotExact("only Spark answers this")
