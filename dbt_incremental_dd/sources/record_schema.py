"""The columns of a source's records: as declared, or as first found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.reserved import refuse_reserved

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POSITION = StructType(
    [
        StructField("lsn", LongType()),
        StructField("scn", LongType()),
        StructField("file", StringType()),
        StructField("pos", LongType()),
        StructField("ts_ms", LongType()),
    ]
)


def declared(spark: SparkSession, spec: SourceSpec) -> StructType | None:
    """The declared columns; for ``debezium`` they are those of the row inside. Raises ConfigError for a bad type."""
    if spec.ddl is None:
        return None
    try:
        row = spark.createDataFrame([], spec.ddl).schema
    except PySparkException as error:
        wrong = [f"{name} ({dtype})" for name, dtype in spec.columns if not _is_type(spark, dtype)]
        raise ConfigError(
            f"source {spec.name}: the data_type of {', '.join(wrong) or 'its columns'} is none of Spark's",
            "Write a type of Spark SQL, such as bigint, string, decimal(12,2), timestamp.",
        ) from error
    return debezium_record(row) if spec.envelope == "debezium" else row


def _is_type(spark: SparkSession, dtype: str) -> bool:
    try:
        return len(spark.createDataFrame([], f"c {dtype}").schema) == 1
    except PySparkException:
        return False


def inferred(spec: SourceSpec, found: StructType) -> StructType:
    """The columns that Spark found in files, as records of the source's envelope."""
    fields = [field for field in found.fields if field.name not in ("_corrupt_record", "dd_corrupt")]
    refuse_reserved(spec, (field.name for field in fields))
    if spec.envelope != "debezium":
        return StructType(fields)
    outer: dict[str, DataType] = {field.name: field.dataType for field in fields}
    payload = outer.get("payload")
    inner = {f.name: f.dataType for f in payload.fields} if isinstance(payload, StructType) else outer
    row = next((t for name in ("after", "before") if isinstance(t := inner.get(name), StructType)), None)
    if row is None:
        raise SourceError(
            f"source {spec.name}: its records have neither `after` nor `before`; they have {', '.join(outer)}",
            "Is this a Debezium feed? If not, choose another envelope.",
        )
    refuse_reserved(spec, row.names)
    return debezium_record(row)


def debezium_record(row: StructType) -> StructType:
    """Debezium's JSON envelope around a row, with and without its ``payload`` wrapper."""
    event = [
        StructField("before", row),
        StructField("after", row),
        StructField("op", StringType()),
        StructField("ts_ms", LongType()),
        StructField("source", _POSITION),
    ]
    return StructType([*event, StructField("payload", StructType(event))])
