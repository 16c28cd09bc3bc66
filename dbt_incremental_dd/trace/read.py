"""Reading a trace as Spark DataFrames of updates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import reduce as fold
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.trace.object_store import spark_uri

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


_USERS_OWN = '"type":"udt"'
"""In Spark's JSON of a type that a program has defined."""
_INCOMPARABLE = re.compile(r'"__COLLATIONS"|"(?:type|elementType|keyType|valueType)":"variant"')
"""In Spark's JSON of a field."""

_ONE_TASK = 4 << 20
"""Bytes of files that one task reads sooner than several would be scheduled; what follows needs no exchange."""


def struct(schema: Schema) -> StructType:
    """Spark's form of a schema, all columns nullable."""
    return StructType.fromJson(json.loads(schema.to_json()))


def schema_of(dtype: StructType) -> Schema:
    """The schema of a Spark struct. Raises UnsupportedSQL as ``refuse_incomparable`` does."""
    refuse_incomparable(dtype)
    return Schema.from_json(dtype.json())


def refuse_incomparable(dtype: StructType) -> None:
    """Raises UnsupportedSQL for columns whose stored values cannot be found again by their value.

    Spark compares no variants, and under a collation it calls strings equal that are stored as different ones.
    """
    text = dtype.json()
    if _USERS_OWN in text:
        named = (f.name for f in dtype if _USERS_OWN in json.dumps(f.jsonValue(), separators=(",", ":")))
        remedy = "Cast it to what it is stored as."
        raise UnsupportedSQL(f"column {next(named, '')} has a type that a program has defined", remedy)
    if not _INCOMPARABLE.search(text):
        return
    for field in dtype:
        found = _INCOMPARABLE.search(json.dumps(field.jsonValue(), separators=(",", ":")))
        if found and found.group().endswith('"variant"'):
            raise UnsupportedSQL(f"column {field.name} has a VARIANT", f"Keep it as text: to_json({field.name}).")
        if found:
            remedy = f"Cast it: CAST({field.name} AS STRING COLLATE UTF8_BINARY)."
            raise UnsupportedSQL(f"column {field.name} has a collation", remedy)


def updates(spark: SparkSession, uri: str, files: Sequence[DataFile], schema: Schema) -> DataFrame:
    """The files' updates, with the columns of ``schema``; a column that a file lacks is NULL."""
    wanted = struct(schema)
    if not files:
        return spark.createDataFrame([], wanted)
    frame = spark.read.schema(wanted).parquet(*(spark_uri(f"{uri}/{file.path}") for file in files))
    return frame.coalesce(1) if sum(file.bytes for file in files) <= _ONE_TASK else frame


def in_interval(frame: DataFrame, files: Iterable[DataFile], after: Time, up_to: Time) -> DataFrame:
    """The updates with ``after < dd_time <= up_to``; a comparison that no file needs is left out."""
    files = tuple(files)
    if after > BEGINNING and any(file.first <= after for file in files):
        frame = frame.where(F.col(TIME) > F.lit(after).cast("bigint"))
    if any(file.last > up_to for file in files):
        frame = frame.where(F.col(TIME) <= F.lit(up_to).cast("bigint"))
    return frame


def consolidate(frame: DataFrame, diffs: Sequence[str] = (DIFF,)) -> DataFrame:
    """Sums the diffs of equal rows and drops rows whose diffs are all zero.

    Equality is that of GROUP BY: NULL equals NULL, NaN equals NaN, 0.0 equals -0.0.
    """
    data = [name for name in frame.columns if name not in diffs]
    types = {field.name: field.dataType for field in frame.schema if field.name in diffs}
    sums = (F.sum(quoted(name)).cast(types[name]).alias(name) for name in diffs)
    summed = frame.groupBy(*map(quoted, data)).agg(*sums)
    return summed.where(any_nonzero(diffs))


def any_nonzero(diffs: Sequence[str]) -> Column:
    """True where one of the diffs is not zero."""
    return fold(lambda a, b: a | b, (F.col(quote_name(name)) != F.lit(0) for name in diffs))


def quote_name(name: str) -> str:
    """A column name as an identifier, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def quoted(name: str) -> Column:
    """The column of that very name (dots and all)."""
    return F.col(quote_name(name))
