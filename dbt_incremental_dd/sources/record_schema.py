"""The columns of a source's records: as declared, or as first found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.logical.sql_types import type_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.sources.spec import SourceSpec
from dbt_incremental_dd.trace.spark_reader import schema_of, struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def declared(session: LazySession, spec: SourceSpec) -> StructType | None:
    """The columns of records by those that are declared, if any are. Raises ConfigError for a bad type."""
    row = declared_row(session, spec)
    return None if row is None else spec.envelope.record_of(row)


def declared_columns(session: LazySession, spec: SourceSpec) -> Schema | None:
    """The same as the engine's own columns. Raises what ``declared`` raises."""
    found = declared(session, spec)
    return None if found is None else schema_of(found)


def declared_row(session: LazySession, spec: SourceSpec) -> StructType | None:
    """The columns that are declared, which are those of rows, if any are. Raises ConfigError for a bad type."""
    if spec.ddl is None:
        return None
    try:
        return struct(Schema(tuple(Column(name, type_of(dtype)) for name, dtype in spec.columns)))
    except ValueError:  # Spark may know it
        spark = session.spark
    try:
        return spark.createDataFrame([], spec.ddl).schema
    except PySparkException as error:
        wrong = [f"{name} ({dtype})" for name, dtype in spec.columns if not _is_type(spark, dtype)]
        raise ConfigError(
            f"source {spec.name}: the data_type of {', '.join(wrong) or 'its columns'} is none of Spark's",
            "Write a type of Spark SQL, such as bigint, string, decimal(12,2), timestamp.",
        ) from error


def _is_type(spark: SparkSession, dtype: str) -> bool:
    try:
        return len(spark.createDataFrame([], f"c {dtype}").schema) == 1
    except PySparkException:
        return False


def inferred(spec: SourceSpec, found: StructType) -> StructType:
    """The columns that Spark found in files, as records of the source's envelope. Raises SourceError."""
    fields = [field for field in found.fields if field.name not in ("_corrupt_record", "dd_corrupt")]
    return spec.envelope.record_found(spec.name, spec.settings, StructType(fields))
