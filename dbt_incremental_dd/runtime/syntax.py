"""Whose fault it is that SQL cannot be parsed: Spark is asked."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.foreign import reason
from dbt_incremental_dd.frontend.parsed import NotParsed
from dbt_incremental_dd.frontend.reason import unclosed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLACE = re.compile(r"\s*(?:SQLSTATE: \w+)?\s*\(line (\d+), pos (\d+)\)")


def told_by_spark(spark: SparkSession, sql: str, error: NotParsed) -> UnsupportedSQL:
    """The error to raise: Spark's, where it does not parse the SQL either. Nothing of the SQL is executed."""
    if unclosed(sql) is not None:
        return UnsupportedSQL(error.construct, "Close it.")
    with suppress(AnalysisException):
        try:
            spark.sql("EXPLAIN\n" + sql)
        except ParseException as told:
            return UnsupportedSQL(_placed(reason(told)), "Correct the SQL's syntax.")
    return UnsupportedSQL(
        f"{error.construct}; Spark knows this syntax, but it cannot be maintained",
        "Write it in another way, or move it into a view or a model of another materialization.",
    )


def _placed(text: str) -> str:
    """Spark's message behind its place in the user's text, which begins in the second line of what Spark was given."""
    found = _PLACE.search(text)
    if found is None:
        return f"the SQL cannot be parsed: {text}"
    line, column = int(found[1]) - 1, int(found[2]) + 1
    return f"the SQL cannot be parsed at line {line}, column {column}: {text[: found.start()]}"
