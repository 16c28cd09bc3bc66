"""Constants are what Spark says they are, whether or not it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
import pytest

from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import ANSI, RULES, TIME_ZONE, LazySession, SessionMemory
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KNOWN = [
    *("0", "-1", "999999999", "-2147483648L", "2147483648L", "1L", "true", "FALSE", "NULL", "''", "'a b'", "'é😀'"),
    *("0.05", "1.5", "-0.5", "10.00", "0.00", "00.50", "123456789012345678.123456789012345678", "-0.0", "0.10"),
    *(r"'a\\b'", r"'\\'", r"'\\\\d'", "'^a$'", "'$1'", "'a$ {x}'"),
    *("DATE '1993-07-01'", "date'2024-02-28'", "CAST('1600-01-01' AS DATE)"),
    "timestamp_millis(1700000000123L)",
    *("1e0", "-2.5E3", "1.5D", "7d", "0.1e-10", "12345678901234567e22", "-0e0"),
    *("TIMESTAMP '2024-01-01 00:00:00'", "timestamp'2024-07-01T10:20:30.25'", "TIMESTAMP_LTZ '2024-07-01'"),
    *("TIMESTAMP '2024-07-01 10:20:30+05:30'", "TIMESTAMP_NTZ '2024-03-10 02:30:00'"),
]
ASKED = [
    *(
        "2147483647",
        "2147483648",
        "7S",
        "'it''s'",
        r"'a\nb'",
        "'${x}'",
        "TIMESTAMP '2024-03-10 02:30:00'",
        "TIMESTAMP '2024-11-03 01:30:00'",
        "TIMESTAMP '1999-01-01 00:00:00'",
        "TIMESTAMP '2024-01-01 00:00'",
        "TIMESTAMP_NTZ '2024-01-01 00:00:00Z'",
        "1e400",
        "1.5F",
        "DATE '1582-10-10'",
    ),
    *("DATE '2024-01-31'", "2 - 1", "concat('a', 'b')", "X'00'"),
]


class _Usual(SessionMemory):
    """Of the suite's sessions."""

    @property
    def settings(self) -> Mapping[str, str]:
        return {TIME_ZONE: os.environ["TZ"], ANSI: "true", **RULES}


def _unasked() -> NoReturn:
    raise AssertionError("Spark was asked")


def _same(spark: SparkSession, sql: str, found: Value) -> None:
    frame = spark.sql(f"SELECT {sql} AS v")
    (column,) = schema_of(frame.schema)
    assert found.type == column.type, sql
    answer = frame.toArrow()["v"]
    wanted = answer if arrow_type(column.type) is None else answer.cast(arrow_type(column.type) or pa.null())
    assert found.data.as_py() == wanted[0].as_py(), sql


@pytest.mark.parametrize("sql", KNOWN)
def test_plain_literals_are_known(spark: SparkSession, sql: str) -> None:
    _same(spark, sql, SparkConstants(LazySession(_unasked, _Usual())).value_of(sql))


def test_others_are_asked_for(spark: SparkSession) -> None:
    constants = SparkConstants(LazySession.of(spark))
    for sql in ASKED:
        try:
            found = constants.value_of(sql)
        except NotExact:
            continue
        _same(spark, sql, found)


_ELSEWHERE = """
import sys, tempfile
from dbt_incremental_dd.runtime.session import open_session
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
spark = open_session(tempfile.mkdtemp(), {})
found = SparkConstants(LazySession.of(spark)).value_of("TIMESTAMP '2024-01-01 00:00:00'")
print(found.data.value, spark.sql("SELECT unix_micros(TIMESTAMP '2024-01-01 00:00:00')").head()[0])
"""


def test_a_process_in_another_time_zone() -> None:
    environment = {**os.environ, "TZ": "America/St_Johns"}
    done = subprocess.run([sys.executable, "-c", _ELSEWHERE], env=environment, capture_output=True, text=True)
    here, wanted = done.stdout.split()
    assert here == wanted == "1704079800000000", done.stderr
