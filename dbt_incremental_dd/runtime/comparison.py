"""Both directions of EXCEPT ALL between a batch answer and what is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace.spark_reader import consolidate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STORED = "dd_stored"


@dataclass(frozen=True)
class Verification:
    """``missing`` and ``unexpected`` count rows of the batch answer that are not stored, and the reverse."""

    model: str
    as_of: Time
    rows: int
    missing: int
    unexpected: int
    rebuild_seconds: float

    @property
    def exact(self) -> bool:
        """Whether both directions of EXCEPT ALL are empty."""
        return not self.missing and not self.unexpected


def compared(name: str, t: Time, answer: DataFrame, stored: DataFrame, seconds: float) -> Verification:
    """Both directions in one pass: the sums of +1 and -1. ``stored`` has each row's multiplicity in ``dd_diff``;
    ``seconds`` is what the answer took."""
    given = answer.withColumn(DIFF, F.lit(1).cast("bigint")).withColumn(_STORED, F.lit(0).cast("bigint"))
    held = stored.withColumn(_STORED, F.col(DIFF)).withColumn(DIFF, -F.col(DIFF))
    found = consolidate(given.union(held), (DIFF, _STORED)).agg(
        F.sum(F.greatest(DIFF, F.lit(0))).alias("missing"),
        F.sum(-F.least(DIFF, F.lit(0))).alias("unexpected"),
        F.sum(_STORED).alias("rows"),
    )
    missing, unexpected, rows = (count or 0 for count in found.collect()[0])
    return Verification(name, t, rows, missing=missing, unexpected=unexpected, rebuild_seconds=seconds)
