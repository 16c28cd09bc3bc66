"""Functions of the user's own that a query calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend import clock
from dbt_incremental_dd.frontend.parsed import ParsedQuery
from dbt_incremental_dd.frontend.place import place
from dbt_incremental_dd.local.names import NAMES
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.trace.spark_reader import quote_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARYING = re.compile(r"^(Create Time|Configs|\s)", re.IGNORECASE)


def routines(session: LazySession, query: ParsedQuery) -> Mapping[str, str]:
    """The definition of each function that is not one of Spark's, by its name.

    Raises UnsupportedSQL for one that is not deterministic, and for one that reads tables by itself: nobody would
    know when these change. A function that does not say what it is (in Python or Java) is taken to be deterministic.
    """
    found, others = {}, query.called - NAMES - clock.NAMES
    sparks = _sparks(session) if others else frozenset()
    for name in sorted(others):
        text = None if name in sparks else _definition(session.spark, name)
        if text is None:
            continue
        if re.search(r"^Deterministic:\s+false", text, re.MULTILINE):
            remedy = "Declare it DETERMINISTIC if it is; otherwise use another expression."
            raise UnsupportedSQL(f"{name}() is declared not deterministic{place(query.sql, name)}", remedy)
        if re.search(r"^Data Access:\s+READS SQL DATA", text, re.MULTILINE):
            remedy = "Join the tables that it reads in the model's own query."
            raise UnsupportedSQL(f"{name}() reads tables by itself{place(query.sql, name)}", remedy)
        found[name] = text
    return found


def _sparks(session: LazySession) -> frozenset[str]:
    return session.functions | {"dd_now"}


def _definition(spark: SparkSession, name: str) -> str | None:
    """What Spark says of the function; None of syntax that only looks like one."""
    try:
        quoted = ".".join(quote_name(part) for part in name.split("."))
        lines = [row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED {quoted}").collect()]
    except AnalysisException:
        return None
    return "\n".join(line for line in lines if not _VARYING.match(line))
