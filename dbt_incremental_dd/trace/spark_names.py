"""Removes Spark's notes of who named a column, so that views may have it.

For a name that Spark made up, such as ``count(1)``, it keeps a note in the column's metadata. The note is stored in
files, and a view of such a column is refused. An alias keeps the note; metadata of the alias's own replace it, unless
they are empty, which some releases take for none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_incremental_dd.trace.spark_reader import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

_METADATA = {"dd_named": True}


def with_own_names(frame: DataFrame) -> DataFrame:
    """The same rows and columns, with no note of who named them."""
    fields = frame.schema.fields
    return frame.select(*map(_column, fields)) if any(field.metadata for field in fields) else frame


def _column(field: StructField) -> Column:
    column = quoted(field.name)
    return column.alias(field.name, metadata=_METADATA) if field.metadata else column
