"""Functions and operators on the driver: which there are, and that each is Spark's for every value.

Every call is evaluated row by row over a table of edge values, so that one value that is left to Spark hides no other.
"""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import parse
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.zones import SETTLED, local
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.workspace import local_frame
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.local import calls

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DAY = datetime.date
_NAN, _INFINITY = float("nan"), float("inf")


def _at(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts, tzinfo=datetime.UTC)  # type: ignore[arg-type, misc]


DATES = [
    *(_DAY(2024, 2, 29), _DAY(2023, 12, 31), _DAY(2021, 1, 3), _DAY(1970, 1, 1), _DAY(1969, 12, 31), _DAY(2000, 1, 31)),
    *(_DAY(1, 1, 1), _DAY(9999, 12, 31), _DAY(1582, 10, 4), _DAY(1582, 10, 15), _DAY(1900, 3, 1), _DAY(2020, 12, 31)),
]
MOMENTS = [
    *(_at(2024, 2, 29, 23, 59, 59, 999_999), _at(1970, 1, 1), _at(1969, 12, 31, 23, 59, 59, 1), _at(2026, 6, 1, 9, 30)),
    *(
        _at(1, 1, 1),
        _at(9999, 12, 31, 23, 59, 59, 999_999),
        _at(1582, 10, 4, 12),
        _at(1883, 11, 18, 17),
        _at(900, 2, 3),
    ),
    *(_at(2024, 3, 10, 7), _at(2024, 3, 10, 6, 59, 59), _at(2024, 11, 3, 5, 30), _at(2024, 11, 3, 6, 30, 0, 120_000)),
    *(_at(2050, 7, 1), _at(2024, 3, 31, 1, 30), _at(2024, 10, 27, 0, 30), _at(2023, 12, 31, 3), _at(2020, 2, 29, 12)),
]
WORDS = [
    *("", " ", "a", "A", "ab", "ba", "aab", "  a b ", "\ta\n", "ä", "\U0001f600x", "e\u0301", "ß", "İ", "1", "-7"),
    *("a/b/c/d", "/", "//", "a.b.c", "x=1&channel_id=abc&y", "channel_id=", "&channel_id=q", "Hello World", "it's"),
    *(
        "a\nb",
        "ab\n",
        "a\rb",
        "a%b",
        "a_b",
        "\\",
        "(",
        "aaa",
        "2024-01-31",
        "00012",
        "NULL",
        "a  b",
        "\x00",
        "o'neil-x",
    ),
    *("a,b,,c", "AbC dEf", "x\u2028y", "x\u0085", "\x0bv", "é_1", "x" * 60, "foo123bar45", "user@example.com"),
]
PLAIN = [
    *("1", "-1", "0", "2147483647", "2147483648", "-9223372036854775808", "1.5", "-0.5", "0.005", "12.345", "+1", " 1"),
    *(
        "1 ",
        "1e3",
        "",
        "abc",
        "true",
        "FALSE",
        "false",
        "t",
        "2024-02-29",
        "2023-02-29",
        "2024-2-9",
        "2024-01-31 10:00:00",
    ),
    *(
        "2024-01-31T10:00:00.123",
        "0001-01-01",
        "9999-12-31",
        "0000-01-01",
        "NaN",
        "Infinity",
        "1d",
        "-0",
        "007",
        "\u0661",
    ),
    *("2024-03-10 02:30:00", "2024-11-03 01:30:00", "99999999999999999999", "0.1", "1.", ".5", "2024-01-31\n", "1\n"),
]
DOUBLES = [
    *(
        0.0,
        -0.0,
        1.0,
        -1.5,
        2.5,
        0.125,
        1.005,
        2.675,
        1e15,
        1e300,
        5e-324,
        0.1,
        1 / 3,
        1234.5678,
        -2.345,
        4503599627370497.5,
    ),
    *(_NAN, _INFINITY, -_INFINITY, 9.3e18, 9007199254740993.0, 0.285, 100.455, 1.15),
]
VALUES: dict[str, tuple[str, list[Any]]] = {
    "i": ("integer", [1, 0, -1, 7, -7, 3, 12, 31, 2024, 2**31 - 1, -(2**31), 100_000]),
    "j": ("integer", [2, 1, 0, -1, -3, 5, 29, 65, 10, 2**31 - 1, -(2**31)]),
    "l": ("long", [5, 0, -1, 10**12, 1_700_000_000, -1_700_000_001, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "k": ("long", [1_700_000_000, 0, -1_700_000_001, 253_402_300_799, -62_135_596_800, 10**10]),
    "s": ("short", [1, 0, -5, 7, 2**15 - 1, -(2**15)]),
    "b": ("byte", [1, 0, -3, 2**7 - 1, -(2**7)]),
    "m": (
        "decimal(12,2)",
        list(map(Decimal, ("1.25", "0.00", "-1.25", "2.50", "-2.35", "9999999999.99", "-0.01", "7.00"))),
    ),
    "n": (
        "decimal(18,6)",
        list(map(Decimal, ("1.000001", "0.000000", "-3.250000", "999999999999.999999", "0.000001"))),
    ),
    "o": ("decimal(20,10)", list(map(Decimal, ("1.0000000005", "0E-10", "-0.0000000001", "2.5000000000")))),
    "t": ("string", WORDS),
    "u": ("string", [*WORDS[:12], "abc", "channel_id", "/"]),
    "p": ("string", PLAIN),
    "d": ("date", DATES),
    "e": ("date", DATES),
    "g": ("boolean", [True, False]),
    "h": ("boolean", [True, False]),
    "x": ("double", DOUBLES),
    "y": ("double", DOUBLES),
    "v": ("timestamp", MOMENTS),
    "w": ("timestamp", MOMENTS),
}
SCHEMA = Schema(tuple(Column(name, parse(kind)) for name, (kind, _) in VALUES.items()))
_ROWS = 70


def _edges() -> Table:
    """Every value of every column, NULLs, and random neighbours."""
    rng = random.Random(5)
    data = {}
    for column in SCHEMA:
        values = VALUES[column.name][1]
        found = [None, *values, *(rng.choice([None, *values * 3]) for _ in range(_ROWS))][:_ROWS]
        rng.shuffle(found)
        data[column.name] = pa.array(found, arrow_type(column.type))
    return Table(pa.table(data), SCHEMA)


def _tame(plain: str = "1") -> Table:
    """The first value of each column, and NULL."""
    first = {column.name: VALUES[column.name][1][0] for column in SCHEMA}
    first |= {"p": plain, "t": "a b", "u": "b", "x": 1.5, "y": 1.5}
    return Table(pa.table({c.name: pa.array([first[c.name], None], arrow_type(c.type)) for c in SCHEMA}), SCHEMA)


def _evaluated(rows: Table, text: str, constants: SparkConstants) -> Value | None:
    try:
        return evaluate(rows, Expr(text), constants)
    except NotExact:
        return None


def _comparable(column: pa.ChunkedArray) -> list[Any]:
    """Python's dates are of the years 1 to 9999; its floats are compared by their texts."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return column.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32()).to_pylist()
    values = column.to_pylist()
    return [value if value is None else repr(value) for value in values] if pa.types.is_floating(kind) else values


def _check(spark: SparkSession, texts: list[str]) -> dict[str, int]:
    """Compares what the driver makes of all rows, or else of each, with Spark's; gives each text's number of rows."""
    edges, constants = _edges(), SparkConstants(LazySession.of(spark))
    frame = local_frame(spark, edges).selectExpr(*(f"{text} AS p{i}" for i, text in enumerate(texts)))
    answer, types, counts = frame.toArrow(), schema_of(frame.schema).columns, {}
    rows = [Table(edges.arrow.slice(i, 1), SCHEMA) for i in range(_ROWS)]
    wrong: list[str] = []
    for i, text in enumerate(texts):
        wanted, whole = _comparable(answer[f"p{i}"]), _evaluated(edges, text, constants)
        singles = enumerate(_evaluated(row, text, constants) for row in rows)
        found = [(0, whole)] if whole else [(place, value) for place, value in singles if value]
        for place, value in found:
            kind, given = arrow_type(types[i].type), _comparable(value.data)
            right = wanted[place : place + len(given)]
            if given != right or (value.type, value.data.type) != (types[i].type, kind):
                wrong.append(f"{text}: {_different(given, right, place)} {value.type} {types[i].type}")
        counts[text] = _ROWS if whole else len(found)
        nothing = _evaluated(Table(edges.arrow.slice(0, 0), SCHEMA), text, constants)
        assert nothing is None or len(nothing.data) == 0, text
    assert not wrong, "\n".join([f"{len(wrong)}", *wrong[:60]])
    return counts


def _different(given: list[Any], right: list[Any], place: int) -> list[tuple[Any, ...]]:
    """The first values that are not Spark's, with their rows' numbers."""
    pairs = [(place + i, *pair) for i, pair in enumerate(zip(given, right, strict=True)) if pair[0] != pair[1]]
    return pairs[:3]


def _assert_many(counts: dict[str, int]) -> None:
    """A text of which most values are left to Spark proves little."""
    few = {text: count for text, count in counts.items() if count < _ROWS // 20}
    assert not few, few


def test_every_call_is_evaluated_here_and_is_spark_s(spark: SparkSession) -> None:
    texts = [text for family in calls.HERE.values() for text in family]
    tame, constants = (
        [_tame(), _tame("2024-01-31"), _tame("true"), _tame("2024-01-31 10:00:00")],
        SparkConstants(LazySession.of(spark)),
    )
    left = [text for text in texts if not any(_evaluated(rows, text, constants) for rows in tame)]
    counts = _check(spark, texts)
    assert not left, left
    _assert_many(counts)


def test_in_a_zone_with_summer_time(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "America/New_York")
    counts = _check(other, calls.IN_ZONE)
    _assert_many(counts)


def test_an_unsettled_zone_is_spark_s(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Africa/Casablanca")
    constants = SparkConstants(LazySession.of(other))
    texts = ["hour(v)", "CAST(v AS DATE)", "CAST(d AS TIMESTAMP)", "date_trunc('DAY', v)", "CAST(v AS STRING)"]
    assert not [text for text in texts if _evaluated(_tame(), text, constants)]


def test_a_zone_of_fixed_offset(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "-05:30")
    _check(other, calls.IN_ZONE)


@pytest.mark.parametrize("text", calls.SPARKS)
def test_what_is_spark_s(spark: SparkSession, text: str) -> None:
    assert _evaluated(_tame(), text, SparkConstants(LazySession.of(spark))) is None


def test_settled_zones_are_spark_s(spark: SparkSession) -> None:
    """Local times around all changes of all zones."""
    hours = [_at(2000, 1, 3) + datetime.timedelta(hours=12 * n) for n in range(2 * 365 * 38)]
    changes = set()
    for zone in map(ZoneInfo, SETTLED):
        offsets = [hour.astimezone(zone).utcoffset() for hour in hours]
        changes |= {hours[i] for i in range(1, len(hours)) if offsets[i] != offsets[i - 1]}
    around = sorted({change + datetime.timedelta(minutes=30 * n) for change in changes for n in range(-26, 4)})
    moments = pa.chunked_array([pa.array(around, pa.timestamp("us", "UTC"))])
    rows = Table(pa.table({"c1": moments}), Schema((Column("c1", parse("timestamp")),)))
    zones = sorted(SETTLED)
    utc = spark.newSession()
    utc.conf.set("spark.sql.session.timeZone", "UTC")
    frame = local_frame(utc, rows).selectExpr(
        *(f"from_utc_timestamp(c1, '{zone}') AS z{i}" for i, zone in enumerate(zones))
    )
    answer = frame.toArrow()
    for i, zone in enumerate(zones):
        here = local(Value(moments, parse("timestamp")), zone).data
        assert pc.all(pc.equal(here.cast(pa.int64()), answer[f"z{i}"].cast(pa.int64()))).as_py(), zone
