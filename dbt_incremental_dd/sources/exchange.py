"""Between Spark and the driver: few records are brought over once, and stored without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.local import Local, if_few
from dbt_incremental_dd.trace.read import quoted, schema_of
from dbt_incremental_dd.trace.write import ROWS_PER_FILE, write_arrow, write_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class Records:
    """Rows in Spark, or on the driver where they are few. ``estimate``: about how many at most.

    ``is_arranged``: its partitions are ranges of the key, and sorted by it.
    """

    def __init__(
        self, spark: SparkSession, source: DataFrame | Local, estimate: int = 0, is_arranged: bool = False
    ) -> None:
        self._spark = spark
        self._source = source
        self.is_arranged = is_arranged
        self.estimate = source.table.num_rows if isinstance(source, Local) else estimate

    @property
    def frame(self) -> DataFrame:
        """The rows in Spark."""
        return self._source.frame if isinstance(self._source, Local) else self._source

    @property
    def local(self) -> pa.Table | None:
        """The rows on the driver, if they are there."""
        return self._source.table if isinstance(self._source, Local) else None

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._source.schema if isinstance(self._source, Local) else schema_of(self._source.schema)

    @property
    def _is_many(self) -> bool:
        """Whether there are certainly too many for the driver; of a file's size only a guess is known."""
        return self.estimate > 2 * limits.TAKEN_ROWS

    def localized(self) -> Records:
        """The same rows, computed and on the driver if they are few."""
        if self.local is not None or self._is_many:
            return self
        few = if_few(self._spark, self.frame, limits.TAKEN_ROWS)
        return self if few is None else Records(self._spark, few)

    def arranged_by(self, key: Sequence[str]) -> Records:
        """The same rows, if they are many in partitions by ranges of the key, each for one file.

        A window function over the key then needs no other exchange, and leaves each partition sorted by it.
        """
        if self.local is not None or not self._is_many:
            return self
        files = -(-self.estimate // ROWS_PER_FILE)
        frame = self.frame.repartitionByRange(files, *map(quoted, key))
        return Records(self._spark, frame, self.estimate, is_arranged=True)

    def mapped(self, frame: DataFrame) -> Records:
        """Other columns of the same rows, or some of them, in their order."""
        return Records(self._spark, frame, self.estimate, self.is_arranged)

    def where(self, condition: Column) -> Records:
        """The rows for which a condition holds; computed by Spark."""
        return Records(self._spark, self.frame.where(condition), self.estimate)

    def replaced(self, table: pa.Table) -> Records:
        """Other rows on the driver, with the same columns."""
        return Records(self._spark, Local(self._spark, table, self.schema))

    def select(self, names: tuple[str, ...]) -> Records:
        """Some of the columns."""
        if self.local is None:
            return Records(self._spark, self.frame.select(*map(quoted, names)), self.estimate)
        return Records(self._spark, Local(self._spark, self.local.select(list(names)), self.schema.select(names)))

    def counted(self, diff: int) -> Records:
        """The rows with a ``dd_diff`` of that each."""
        if self.local is None:
            return Records(self._spark, self.frame.withColumn(DIFF, F.lit(diff).cast("bigint")), self.estimate)
        table = self.local.append_column(DIFF, pa.array([diff] * self.local.num_rows, pa.int64()))
        return Records(self._spark, Local(self._spark, table, Schema((*self.schema.columns, DIFF_COLUMN))))


def write(
    storage: Storage,
    uri: str,
    rows: Records,
    stored: Schema,
    t: Time,
    bounded: Sequence[str],
    sort_by: Sequence[str] = (),
) -> tuple[DataFile, ...]:
    """The rows as files of a trace, stamped ``t``, sorted by ``sort_by``."""
    local = rows.local
    if local is None:
        stamped = rows.frame.withColumn(TIME, F.lit(t).cast("bigint")).select(*map(quoted, stored.names))
        if sort_by and not rows.is_arranged:
            stamped = stamped.repartitionByRange(*map(quoted, sort_by)).sortWithinPartitions(*map(quoted, sort_by))
        return write_spark(storage, uri, stamped, bounded, is_arranged=bool(sort_by))
    if local.num_rows == 0:
        return ()
    table = local.append_column(TIME, pa.array([t] * local.num_rows, pa.int64())).select(list(stored.names))
    table = table.sort_by([(name, "ascending") for name in sort_by]) if sort_by else table
    return (write_arrow(storage, uri, table, stored, bounded),)
