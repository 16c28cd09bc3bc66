"""Between Spark and the driver: few records are brought over once, and stored without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.local import local_frame
from dbt_incremental_dd.trace.read import quoted
from dbt_incremental_dd.trace.write import write_arrow, write_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class Records:
    """Rows in Spark, on the driver (``local``), or both. ``estimate``: about how many at most.

    Where they are on the driver, their Spark form is made when it is first asked for.
    """

    def __init__(
        self,
        spark: SparkSession,
        frame: DataFrame | None = None,
        estimate: int = 0,
        local: pa.Table | None = None,
        schema: StructType | None = None,
    ) -> None:
        self._spark = spark
        self._frame = frame
        self._schema = schema
        self.local = local
        self.estimate = estimate if local is None else local.num_rows

    @cached_property
    def frame(self) -> DataFrame:
        """The rows in Spark."""
        if self._frame is not None:
            return self._frame
        assert self.local is not None
        return local_frame(self._spark, self.local, self.schema)

    @property
    def schema(self) -> StructType:
        """The columns."""
        return self._schema if self._schema is not None else self.frame.schema

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(self.schema.names)

    def localized(self) -> Records:
        """The same rows, computed and on the driver if they are few."""
        if self.local is not None or self.estimate > 20 * limits.LOCAL_ROWS:
            return self
        table = self.frame.limit(limits.LOCAL_ROWS + 1).toArrow()
        if table.num_rows > limits.LOCAL_ROWS:
            return self
        return Records(self._spark, local=table, schema=self.schema)

    def where(self, condition: Column) -> Records:
        """The rows for which a condition holds; computed by Spark."""
        return Records(self._spark, self.frame.where(condition), self.estimate)

    def replaced(self, table: pa.Table) -> Records:
        """Other rows on the driver, with the same columns."""
        return Records(self._spark, local=table, schema=self.schema)

    def select(self, names: Sequence[str]) -> Records:
        """Some of the columns."""
        if self.local is None:
            return Records(self._spark, self.frame.select(*map(quoted, names)), self.estimate)
        fields = StructType([self.schema[name] for name in names])
        return Records(self._spark, local=self.local.select(list(names)), schema=fields)

    def counted(self, diff: int) -> Records:
        """The rows with a ``dd_diff`` of that each."""
        if self.local is None:
            return Records(self._spark, self.frame.withColumn(DIFF, F.lit(diff).cast("bigint")), self.estimate)
        table = self.local.append_column(DIFF, pa.array([diff] * self.local.num_rows, pa.int64()))
        return Records(
            self._spark, local=table, schema=StructType([*self.schema.fields, StructField(DIFF, LongType())])
        )


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
        if sort_by:
            stamped = stamped.repartitionByRange(*map(quoted, sort_by)).sortWithinPartitions(*map(quoted, sort_by))
        return write_spark(storage, uri, stamped, bounded)
    if local.num_rows == 0:
        return ()
    table = local.append_column(TIME, pa.array([t] * local.num_rows, pa.int64())).select(list(stored.names))
    table = table.sort_by([(name, "ascending") for name in sort_by]) if sort_by else table
    return (write_arrow(storage, uri, table, stored, bounded),)
