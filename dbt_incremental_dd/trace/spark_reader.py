"""Reads a trace as Spark DataFrames of updates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.parquet.checksum import require_intact
from dbt_incremental_dd.storage.uris import spark_uri

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


_COLLATION = '"__COLLATIONS"'
_INTERVAL = r"(?:calendar_?)?interval|interval (?:year|month)[^\"]*"
"""Intervals of years and months, or of all units; those of days and seconds are stored as numbers."""
_UNSTORABLE = re.compile(
    rf'{_COLLATION}|"(?:type|elementType|keyType|valueType)":"(udt|variant|{_INTERVAL}|time\(\d\))"'
)
"""Matches Spark's JSON of a field."""

_ONE_TASK = 4 << 20
"""Maximum number of bytes of files that one task reads, so that what follows needs no exchange."""


def struct(schema: Schema) -> StructType:
    """A schema as a Spark struct, all columns nullable."""
    return StructType.fromJson(json.loads(schema.to_json()))


def schema_of(dtype: StructType) -> Schema:
    """The schema of a Spark struct. Raises UnsupportedSQL as ``refuse_unstorable`` does."""
    refuse_unstorable(dtype)
    return Schema.from_json(dtype.json())


def refuse_unstorable(dtype: StructType) -> None:
    """Raises UnsupportedSQL for the first column that ``unstorable`` returns."""
    for name, (kind, remedy) in unstorable(dtype).items():
        raise UnsupportedSQL(f"column {name} has {kind}", remedy)


def unstorable(dtype: StructType) -> dict[str, tuple[str, str]]:
    """Columns whose values cannot be stored, or not be found again by their value: why, and what to do.

    Neither Delta nor Arrow has intervals of months or times of day. Spark cannot compare variants, and under a
    collation strings are equal that are stored as different ones.
    """
    if not _UNSTORABLE.search(dtype.json()):
        return {}
    texts = {field.name: json.dumps(field.jsonValue(), separators=(",", ":")) for field in dtype}
    found = {name: _UNSTORABLE.search(text) for name, text in texts.items()}
    return {name: _why(name, match[1]) for name, match in found.items() if match}


def _why(name: str, type: str | None) -> tuple[str, str]:
    if type is None:
        return "a collation", f"Cast it: CAST({name} AS STRING COLLATE UTF8_BINARY)."
    if type == "udt":
        return "a type that a program has defined", "Cast it to what it is stored as."
    if type == "variant":
        return "a VARIANT", f"Keep it as text: to_json({name})."
    if type.startswith("time"):
        return "a TIME", f"Keep it as text, CAST({name} AS STRING), or as a number: EXTRACT(HOUR FROM {name})."
    return "an INTERVAL", f"Keep it as text, CAST({name} AS STRING), or as a number: EXTRACT(MONTH FROM {name})."


def updates(spark: SparkSession, uri: str, files: Sequence[DataFile], schema: Schema) -> DataFrame:
    """The files' updates, with the columns of ``schema``; a column that a file lacks is NULL. Raises OSError for a file
    that is not as it was written, as far as ``require_intact`` checks."""
    wanted = struct(schema)
    if not files:
        return no_rows(spark, wanted)
    require_intact(f"{uri}/{file.path}" for file in files)
    frame = spark.read.schema(wanted).parquet(*(spark_uri(f"{uri}/{file.path}") for file in files))
    return frame.coalesce(1) if sum(file.bytes for file in files) <= _ONE_TASK else frame


def no_rows(spark: SparkSession, dtype: StructType) -> DataFrame:
    """A DataFrame without rows. Spark's optimizer knows that it is empty, so that computing it needs no job."""
    return spark.createDataFrame([], dtype).limit(0)


def in_interval(frame: DataFrame, files: Iterable[DataFile], after: Time, up_to: Time) -> DataFrame:
    """The updates with ``after < dd_time <= up_to``. Comparisons that the files' bounds make redundant are omitted."""
    files = tuple(files)
    if after > BEGINNING and any(file.first <= after for file in files):
        frame = frame.where(f"{TIME} > {after}L")
    if any(file.last > up_to for file in files):
        frame = frame.where(f"{TIME} <= {up_to}L")
    return frame


def consolidate(frame: DataFrame, diffs: Sequence[str] = (DIFF,)) -> DataFrame:
    """Sums the diffs of equal rows and drops rows whose diffs are all zero.

    Equality is that of GROUP BY: NULL equals NULL, NaN equals NaN, 0.0 equals -0.0.
    """
    data = [quote_name(name) for name in frame.columns if name not in diffs]
    types = {quote_name(name): frame.schema[name].dataType.simpleString() for name in diffs}
    sums = (F.expr(f"CAST(sum({diff}) AS {dtype}) AS {diff}") for diff, dtype in types.items())
    return frame.groupBy(*data).agg(*sums).where(" OR ".join(f"{diff} <> 0" for diff in types))


def quote_name(name: str) -> str:
    """A column name as a quoted identifier, whatever characters it contains."""
    return "`" + name.replace("`", "``") + "`"


def quoted(name: str) -> Column:
    """The column of exactly that name, dots included."""
    return F.col(quote_name(name))
