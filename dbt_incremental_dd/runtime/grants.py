"""Whether a Spark session can grant anything: Spark itself cannot, an extension of its parser may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_NO_STATEMENT = ("INVALID_STATEMENT_OR_CLAUSE", "Operation not allowed")
"""What Spark's own parser says of GRANT, by its version."""


def knows_grants(spark: SparkSession) -> bool:
    """False only where it is certain that GRANT is no statement of the session's. Nothing is executed."""
    if spark.conf.get("spark.sql.extensions", ""):
        return True
    try:
        spark.sql("EXPLAIN GRANT SELECT ON TABLE dd_none TO `dd_none`")
    except PySparkException as error:
        return not any(text in str(error) for text in _NO_STATEMENT)
    return True
