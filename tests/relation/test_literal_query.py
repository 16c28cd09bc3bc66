"""Queries that read nothing have the rows and the types on the driver that Spark gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.logical.sql_types import described
from dbt_incremental_dd.relation.lazy_session import LazySession, SessionMemory, settings_of
from dbt_incremental_dd.runtime.literal_query import literal_rows
from tests.oracle import difference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

_BITS = "p AS (SELECT 0 AS n UNION ALL SELECT 1)"
_SERIES = f"""WITH rawdata AS (WITH {_BITS}, unioned AS (
    SELECT {" + ".join(f"p{i}.n * power(2, {i})" for i in range(6))} + 1 AS n
    FROM {" CROSS JOIN ".join(f"p AS p{i}" for i in range(6))})
    SELECT * FROM unioned WHERE n <= 50 ORDER BY n)"""
COMPUTED = (
    f"{_SERIES} SELECT CAST(n AS INT) AS n FROM rawdata",
    f"""{_SERIES} SELECT to_timestamp(to_unix_timestamp(add_months(
        coalesce(date('2018-01-01'), nvl2(date('2018-01-01'), assert_true(date('2018-01-01') IS NOT NULL), NULL)),
        CAST(row_number() OVER (ORDER BY n) - 1 * 1 AS INT)))) AS month FROM rawdata""",
    f"""{_SERIES}, days AS (SELECT date_add(DATE '2024-02-20', CAST(n AS INT)) AS day FROM rawdata)
        SELECT day, year(day) AS y, date_format(day, 'EEEE') AS name, dayofweek(day) IN (1, 7) AS is_free,
        count(*) OVER (PARTITION BY trunc(day, 'MM')) AS days FROM days""",
    f"{_SERIES} SELECT CAST(n AS INT) % 7 AS k, count(*) AS c, sum(n) AS s FROM rawdata GROUP BY ALL",
    f"WITH {_BITS} SELECT a.n, b.n AS m FROM p a LEFT JOIN p b ON a.n = b.n + 1",
    "SELECT k, v FROM VALUES (1, 'a'), (2, NULL), (2, NULL), (NULL, 'c') AS t(k, v) WHERE k IS NOT NULL OR v = 'c'",
    "SELECT 1 AS a WHERE 1 = 0",
)
LEFT = ("SELECT 1 + 1", "SELECT exp(1) AS e", f"{_SERIES} SELECT n % 7 AS k, count(*) AS c FROM rawdata GROUP BY n % 7")
"""Without a name, of a function that only Spark computes, of groups by doubles."""


class _Remembered(SessionMemory):
    """What a former session has said."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings

    @property
    def settings(self) -> Mapping[str, str]:
        return self._settings


def _unopened(spark: SparkSession) -> LazySession:
    return LazySession(pytest.fail, _Remembered(settings_of(spark)), literal_rows=literal_rows)


@pytest.mark.parametrize("sql", COMPUTED)
def test_rows_and_types_are_spark_s(spark: SparkSession, sql: str) -> None:
    rows, answer = _unopened(spark).literal_rows(sql), spark.sql(sql)
    assert rows is not None
    assert [(column.name, described(column.type)) for column in rows.schema] == answer.dtypes
    assert difference(answer, spark.createDataFrame(rows.arrow, answer.schema)) == ([], [])


@pytest.mark.parametrize("sql", LEFT)
def test_others_are_left_to_spark(spark: SparkSession, sql: str) -> None:
    assert _unopened(spark).literal_rows(sql) is None


def test_a_session_with_other_rules_answers_itself(spark: SparkSession) -> None:
    settings = {**settings_of(spark), "spark.sql.legacy.timeParserPolicy": "legacy"}
    assert LazySession(pytest.fail, _Remembered(settings), literal_rows=literal_rows).literal_rows(COMPUTED[0]) is None
