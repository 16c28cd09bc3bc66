"""Brings Spark's rows to the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import ArrayType, MapType, StructType

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.trace.spark_reader import quoted, struct

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_NESTED = (ArrayType, MapType, StructType)


def to_arrow(frame: DataFrame, limit: int | None = None) -> pa.Table:
    """The frame's rows, at most ``limit`` of them, with types that are nullable at all levels of nesting."""
    nullable = _nullable_inside(frame)
    return (nullable if limit is None else nullable.limit(limit)).toArrow()


def _nullable_inside(frame: DataFrame) -> DataFrame:
    """The same rows. PySpark fails to bring a NULL struct if one of its fields is not nullable."""
    nested = [field for field in frame.schema if isinstance(field.dataType, _NESTED)]
    if not nested:
        return frame
    wanted = struct(Schema.from_json(StructType(nested).json()))
    return frame.withColumns({field.name: quoted(field.name).cast(field.dataType) for field in wanted})
