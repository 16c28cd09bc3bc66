"""The examples that Spark ships with its functions."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.check import check
from dbt_incremental_dd.frontend.clock import with_run_time
from dbt_incremental_dd.frontend.parsed import parsed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXAMPLE = re.compile(r"^\s*> (SELECT\b.*?);\s*$", re.MULTILINE | re.DOTALL | re.IGNORECASE)


def examples(spark: SparkSession) -> dict[str, list[str]]:
    """Each built-in function's queries."""

    def of(name: str) -> list[str]:
        told = spark.sql(f"DESCRIBE FUNCTION EXTENDED '{name}'").collect()
        return [text.strip() for text in _EXAMPLE.findall("\n".join(row[0] for row in told))]

    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(names, pool.map(of, names), strict=True))


def expression(query: str) -> str | None:
    """What a query selects, where it is one expression over nothing."""
    try:
        tree = parsed(query).tree
    except (UnsupportedSQL, SqlglotError):
        return None
    plain = (
        isinstance(tree, exp.Select) and len(tree.args) and not tree.args.get("from_") and not tree.args.get("laterals")
    )
    if not plain or len(tree.expressions) != 1 or isinstance(tree.expressions[0], exp.Alias | exp.Aliases | exp.Star):
        return None
    return query[len("SELECT") :].strip()


def has_one_answer(query: str) -> bool:
    """Whether it is the same each time."""
    try:
        check(parsed(query))
        return with_run_time(parsed(query), {}).sql == query
    except UnsupportedSQL:
        return False
