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
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import DriverConstants, SparkConstants
from dbt_incremental_dd.relation.lazy_session import ANSI, RULES, TIME_ZONE, LazySession, SessionMemory
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.local import calls

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


_LITERALS = {
    **{"i": "3", "j": "-7", "l": "9000000000L", "s": "CAST(4 AS SMALLINT)", "b": "CAST(2 AS TINYINT)"},
    **{"m": "1.25", "n": "3.250000", "o": "2.5000000000", "x": "1.5D", "y": "-2.5e-1", "g": "true", "h": "false"},
    **{"t": "'a b'", "u": "'b'", "p": "'2024-01-31'", "d": "DATE '2024-02-29'", "e": "DATE '2023-12-31'"},
    **{"v": "TIMESTAMP '2024-02-29 23:59:59.5'", "w": "TIMESTAMP '2026-06-01 09:30:00'"},
}
_CHUNK = 60


def test_calls_of_literals_are_spark_s(spark: SparkSession) -> None:
    """Every function and operator, of literals in place of columns."""
    by = {name: Expr(f"({text})") for name, text in _LITERALS.items()}
    texts = [Expr(text).substitute(by).sql for family in calls.HERE.values() for text in family]
    constants = DriverConstants(LazySession.of(spark))
    found = {text: value for text in dict.fromkeys(texts) if (value := constants.known(text))}
    assert len(found) > len(texts) * 2 // 3
    wrong = []
    for start in range(0, len(found), _CHUNK):
        some = list(found.items())[start : start + _CHUNK]
        frame = spark.sql(f"SELECT {', '.join(f'{text} AS v{n}' for n, (text, _) in enumerate(some))}")
        answer = frame.toArrow()
        for n, (text, value) in enumerate(some):
            type, wanted = schema_of(frame.schema).columns[n].type, answer[f"v{n}"][0].as_py()
            if value.type != type or repr(value.data.as_py()) != repr(wanted):
                wrong.append(f"{text}: {value.data.as_py()!r} {value.type}, not {wanted!r} {type}")
    assert not wrong, "\n".join(wrong)
