"""Between Spark and the driver: small changes are brought over once, and written without a Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import TIME, Schema
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.read import quoted
from dbt_incremental_dd.trace.write import write_arrow, write_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL_ROWS = 20_000


def as_local(spark: SparkSession, frame: DataFrame, estimate: int) -> tuple[pa.Table | None, DataFrame]:
    """The frame's rows on the driver too, and a frame made of them, where they are few; else None and the frame."""
    if estimate > 20 * LOCAL_ROWS:
        return None, frame
    table = frame.limit(LOCAL_ROWS + 1).toArrow()
    if table.num_rows > LOCAL_ROWS:
        return None, frame
    made = spark.createDataFrame([], frame.schema) if table.num_rows == 0 else spark.createDataFrame(table)
    if [f.dataType for f in made.schema] != [f.dataType for f in frame.schema]:
        made = made.select(*(quoted(f.name).cast(f.dataType).alias(f.name) for f in frame.schema))
    return table, made


def write(
    storage: Storage,
    uri: str,
    local: pa.Table | None,
    frame: DataFrame,
    stored: Schema,
    t: Time,
    bounded: Sequence[str],
    sort_by: Sequence[str] = (),
) -> tuple[DataFile, ...]:
    """The rows as files of a trace, stamped ``t``, sorted by ``sort_by``."""
    if local is None:
        stamped = frame.withColumn(TIME, F.lit(t).cast("bigint")).select(*map(quoted, stored.names))
        if sort_by:
            stamped = stamped.repartitionByRange(*map(quoted, sort_by)).sortWithinPartitions(*map(quoted, sort_by))
        return write_spark(storage, uri, stamped, bounded)
    if local.num_rows == 0:
        return ()
    table = local.append_column(TIME, pa.array([t] * local.num_rows, pa.int64())).select(list(stored.names))
    table = table.sort_by([(name, "ascending") for name in sort_by]) if sort_by else table
    return (write_arrow(storage, uri, table, stored, bounded),)
