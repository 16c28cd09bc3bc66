"""Two relations' rows, both directions of EXCEPT ALL; and which columns a query determines at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, FloatType, MapType, StructType

from tests.oracle import uncancelled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_DIGITS = "%.9e"
"""A sum of doubles depends on the order in which they come: so many digits are the same in any."""


def differences(left: DataFrame, right: DataFrame, columns: Sequence[str] | None = None) -> tuple[int, int]:
    """How many rows only the left one has, and how many only the right one has; of these columns, or of all."""
    names = left.columns if columns is None else columns
    one, other = (frame.select(*(_comparable(frame, name) for name in names)) for frame in (left, right))
    both = one.withColumn("dd_side", F.lit(1)).union(other.withColumn("dd_side", F.lit(-1)))
    sums = both.groupBy(*(F.col(f"`{name}`") for name in one.columns)).agg(F.sum("dd_side").alias("dd_side"))
    row = sums.agg(
        F.coalesce(F.sum(F.greatest("dd_side", F.lit(0))), F.lit(0)),
        F.coalesce(F.sum(F.greatest(-F.col("dd_side"), F.lit(0))), F.lit(0)),
    ).first()
    assert row is not None
    return int(row[0]), int(row[1])


def _comparable(frame: DataFrame, name: str) -> Column:
    """Maps cannot be grouped by; their text can."""
    dtype = dict(frame.dtypes)[name]
    return F.col(f"`{name}`").cast("string").alias(name) if "map<" in dtype else F.col(f"`{name}`")


def rounded(frame: DataFrame) -> DataFrame:
    """The relation with ten digits of each double."""
    doubles = {field.name for field in frame.schema if isinstance(field.dataType, DoubleType | FloatType)}
    return frame.select(
        *(
            F.format_string(_DIGITS, F.col(f"`{name}`") + F.lit(0.0)).alias(name)
            if name in doubles
            else F.col(f"`{name}`")
            for name in frame.columns
        )
    )


def determined(answers: Sequence[DataFrame]) -> list[str]:
    """Columns in which all answers to one query are the same, taken together; the first one's order."""
    first, *others = [_on_driver(answer) for answer in answers]
    found: list[str] = []
    for name in first.column_names:
        if all(_is_same(first, other, [*found, name]) for other in others):
            found.append(name)
    return found


def _on_driver(answer: DataFrame) -> pa.Table:
    """The rows, with text in place of what Arrow does not group by."""
    frame = rounded(answer)
    columns = (
        F.col(f"`{field.name}`").cast("string").alias(field.name)
        if isinstance(field.dataType, ArrayType | MapType | StructType)
        else F.col(f"`{field.name}`")
        for field in frame.schema
    )
    found = frame.select(*columns).toArrow()
    return pa.table(found.columns, found.column_names)  # whether a column may be NULL is another matter in each


def _is_same(one: pa.Table, other: pa.Table, columns: Sequence[str]) -> bool:
    """EXCEPT ALL of these columns, both ways, has no rows."""
    sides = [
        rows.select(columns).append_column("dd_side", pa.repeat(pa.scalar(side, pa.int64()), rows.num_rows))
        for rows, side in ((one, 1), (other, -1))
    ]
    return uncancelled(pa.concat_tables(sides)).num_rows == 0


def table(spark: SparkSession, name: str) -> DataFrame:
    """The relation as it is now."""
    spark.catalog.refreshTable(name)
    return spark.table(name)


def text(counts: tuple[int, int], of: Iterable[str] = ("missing", "unexpected")) -> str:
    """``3 missing, 1 unexpected``."""
    return ", ".join(f"{count} {word}" for count, word in zip(counts, of, strict=True))
