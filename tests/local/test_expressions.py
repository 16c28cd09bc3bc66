"""Expressions on the driver are what Spark says they are, for every value, and of its types."""

from __future__ import annotations

import datetime
import random
from contextlib import suppress
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import parse
from dbt_incremental_dd.local.expressions import evaluate, truth
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.workspace import local_frame
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOMENT = datetime.datetime(2026, 6, 1, 9, 30, tzinfo=datetime.UTC)
VALUES: dict[str, tuple[str, list[Any]]] = {
    "c1": ("integer", [None, 0, 1, -1, 2**31 - 1, -(2**31)]),
    "c2": ("long", [None, 0, 1, 2**63 - 1, -(2**63)]),
    "c3": ("short", [None, 0, 7, -(2**15)]),
    "c4": ("decimal(12,2)", [None, Decimal("0.00"), Decimal("1.00"), Decimal("-9999999999.99"), Decimal("0.01")]),
    "c5": ("decimal(18,6)", [None, Decimal("1.000000"), Decimal("999999999999.999999"), Decimal("0.010000")]),
    "c6": ("string", [None, "", "a", "A", "ab", "ä", "\U0001f600", "1", "a\nb", "a.b", "(", "xaybz", "\\%", "a b\n"]),
    "c7": ("string", [None, "a", "b "]),
    "c8": ("date", [None, datetime.date(1970, 1, 1), datetime.date(1993, 7, 1), datetime.date(1582, 10, 4)]),
    "c9": ("boolean", [None, True, False]),
    "c10": ("double", [None, 0.0, float("nan")]),
    "c11": ("timestamp", [None, _MOMENT, _MOMENT + datetime.timedelta(microseconds=1), _MOMENT.replace(year=1582)]),
}
CONSTANTS = {
    "number": [
        "0",
        "1L",
        "-1",
        "1.0",
        "0.01",
        "2147483648",
        "1e0",
        "7S",
        "CAST(1 AS DECIMAL(38, 0))",
        "2 - 1",
        "1 / 0",
    ],
    "string": ["'a'", "''", "'ab'", "concat('a', 'b')", "'A' COLLATE UTF8_LCASE", "NULL", "1"],
    "date": ["DATE '1993-07-01'", "CAST('1993-04-01' AS DATE) + INTERVAL '3' MONTH", "'1993-07-01'", "NULL"],
    "boolean": ["TRUE", "FALSE", "NULL"],
    "moment": ["TIMESTAMP '2026-06-01 09:30:00'", "DATE '2026-06-01'", "NULL", "coalesce(c11, c11)"],
}
PATTERNS = [
    "'a%'",
    "'%b'",
    "'%a%'",
    "''",
    "'%'",
    "'a'",
    "'%a%b%'",
    "'a_'",
    "'%.%'",
    "'(%'",
    "'\\\\%'",
    "'%\n%'",
    "'%ä%'",
    "ANY ('a%', '%b')",
    "'a/%' ESCAPE '/'",
]
KINDS = {"number": ["c1", "c2", "c3", "c4", "c5", "c10"], "string": ["c6", "c7"], "date": ["c8"], "boolean": ["c9"]}
KINDS["moment"] = ["c11"]


def table(rng: random.Random, rows: int, of: dict[str, tuple[str, list[Any]]] = VALUES) -> pa.Table:
    """Rows of every value, and of every pair of values now and then."""
    data = {name: [rng.choice(values) for _ in range(rows)] for name, (_, values) in of.items()}
    types = {"integer": pa.int32(), "long": pa.int64(), "short": pa.int16(), "string": pa.string()}
    types |= {
        "timestamp": pa.timestamp("us", "UTC"),
        "date": pa.date32(),
        "boolean": pa.bool_(),
        "double": pa.float64(),
    }
    types |= {"decimal(12,2)": pa.decimal128(12, 2), "decimal(18,6)": pa.decimal128(18, 6)}
    return pa.table({name: pa.array(data[name], types[kind]) for name, (kind, _) in VALUES.items()})


def predicate(rng: random.Random, depth: int = 2) -> str:
    """Text of a random predicate."""
    if depth and rng.random() < 0.5:
        one, other = predicate(rng, depth - 1), predicate(rng, depth - 1)
        return rng.choice([f"({one}) AND ({other})", f"({one}) OR ({other})", f"NOT ({one})"])
    kind = rng.choice(list(KINDS))
    column = rng.choice(KINDS[kind])
    other = rng.choice([*CONSTANTS[kind], *KINDS[kind]])
    shapes = [f"{column} {op} {other}" for op in ("=", "<>", "!=", "<", "<=", ">", ">=")]
    shapes += [f"{other} < {column}", f"{column} IS NULL", f"{column} IS NOT NULL"]
    shapes += [f"{column} BETWEEN {rng.choice(CONSTANTS[kind])} AND {other}", f"{column} NOT IN ({other})"]
    shapes += [f"{rng.choice(KINDS['string'])} {rng.choice(['LIKE', 'NOT LIKE'])} {rng.choice(PATTERNS)}"]
    shapes += [f"{column} IN ({', '.join(rng.choice(CONSTANTS[kind]) for _ in range(3))})", "c9", "NOT c9"]
    return rng.choice(shapes)


def test_it_is_spark_s_answer(spark: SparkSession) -> None:
    rng = random.Random(1)
    schema = Schema(tuple(Column(name, parse(kind)) for name, (kind, _) in VALUES.items()))
    local, constants = Table(table(rng, 200), schema), SparkConstants(LazySession.of(spark))
    predicates = [predicate(rng) for _ in range(400)]
    here = {}
    for i, text in enumerate(predicates):
        with suppress(NotExact):
            here[i] = truth(local, Expr(text), constants).to_pylist()
    answer = local_frame(spark, local).selectExpr(*(f"{predicates[i]} AS p{i}" for i in here)).toArrow()
    for i, mask in here.items():
        assert mask == answer[f"p{i}"].to_pylist(), predicates[i]
    assert len(here) > 150


SMALL: dict[str, tuple[str, list[Any]]] = {
    "c1": ("integer", [None, 0, 1, -7, 12_345]),
    "c2": ("long", [None, 0, 3, -4_000_000_000]),
    "c3": ("short", [None, 0, 7, -(2**15)]),
    "c4": ("decimal(12,2)", [None, Decimal("0.00"), Decimal("1.05"), Decimal("-9999999999.99"), Decimal("0.01")]),
    "c5": ("decimal(18,6)", [None, Decimal("1.000001"), Decimal("999999999999.999999"), Decimal("0.010000")]),
    "c6": ("string", [None, "", "a", "A", "ab", "xAybz", "13-999"]),
    "c7": ("string", [None, "a", "b "]),
    "c8": ("date", VALUES["c8"][1]),
    "c9": ("boolean", [None, True, False]),
    "c10": ("double", [None, 0.0, 1.5]),
    "c11": ("timestamp", [None, _MOMENT, _MOMENT.replace(year=1969)]),
}
OPERANDS = [
    "c1",
    "c2",
    "c3",
    "c4",
    "c5",
    "1",
    "CAST(2 AS BIGINT)",
    "0",
    "100",
    "-3",
    "0.2",
    "CAST(3 AS DECIMAL(20, 0))",
    "NULL",
]
TYPES = [
    "BIGINT",
    "INT",
    "DECIMAL(20, 4)",
    "DECIMAL(30,8)",
    "DECIMAL(12,1)",
    "DECIMAL(37, 6)",
    "DECIMAL(5,2)",
    "DECIMAL(15)",
    "DECIMAL",
    "DOUBLE",
]


def number(rng: random.Random, depth: int) -> str:
    """Text of a random expression of numbers."""
    if not depth or rng.random() < 0.2:
        return rng.choice(OPERANDS)
    one, other = number(rng, depth - 1), number(rng, depth - 1)
    condition = rng.choice(["c9", "c1 > 0", f"({one}) IS NULL", f"({one}) <= ({other})", "c1 > 0 OR c9", "c6 <=> c7"])
    shapes = [f"({one}) {operator} ({other})" for operator in "+-*/"] + [f"{one} {rng.choice('+-*')} {other}"]
    shapes += [f"CASE WHEN {condition} THEN {one} ELSE {other} END", f"CASE WHEN {condition} THEN {one} END"]
    shapes += [
        f"CAST({one} AS {rng.choice(TYPES)})",
        f"CAST(({one}) AS {rng.choice(TYPES)})",
        f"if({condition}, {one}, 0)",
    ]
    shapes += [f"coalesce({one}, {other}, 0)", f"greatest({one}, {other})", f"least({one}, {other}, c1)", f"abs({one})"]
    shapes += [
        f"({one}) % CAST('1000000000000' AS DECIMAL(16,0))",
        f"({one}) * c5 * c5",
        f"({one}) * (1 - c4) * (1 + c5)",
    ]
    shapes += [f"(({one}) * 0) * CAST('0.000000000000001' AS DECIMAL(15,15)) * c5"]
    shapes += [f"-({one})", f"CASE WHEN c1 <> 0 THEN CAST(({one}) AS DECIMAL(20,3)) / CAST(c1 AS DECIMAL(20, 0)) END"]
    return rng.choice(shapes)


def word(rng: random.Random, depth: int) -> str:
    """Text of a random expression of strings, dates, or what is made of them."""
    one, other = rng.choice(["c6", "c7"]), rng.choice(["c6", "c7", "'x'", "NULL"])
    shapes = [
        f"upper({one})",
        f"lower({one})",
        f"length({one})",
        f"concat({one}, {other})",
        f"coalesce({one}, {other})",
    ]
    shapes += [f"substring({one}, {rng.choice([0, 1, 2, 9])}, {rng.choice([0, 1, 2, 9])})", f"substring({one} FROM 2)"]
    shapes += [f"CASE WHEN c9 THEN {one} WHEN c1 > 0 THEN {other} ELSE 'z' END", f"greatest({one}, {other}, 'm')"]
    shapes += [
        "year(c8)",
        "EXTRACT(MONTH FROM c8)",
        "day(c8)",
        f"{one} = {other}",
        "c8",
        "c9 AND c1 = 1",
        "nvl(c8, c8)",
        "greatest(c11, c11)",
        "CASE WHEN c9 THEN c11 END",
    ]
    return rng.choice(shapes)


@pytest.mark.parametrize("values", [VALUES, SMALL], ids=["extreme", "small"])
@pytest.mark.parametrize("make", [number, word], ids=["numbers", "words"])
def test_values_and_types_are_spark_s(spark: SparkSession, make: Any, values: dict[str, tuple[str, list[Any]]]) -> None:
    rng = random.Random(3)
    schema = Schema(tuple(Column(name, parse(kind)) for name, (kind, _) in values.items()))
    local = Table(table(rng, 60, values), schema)
    texts = list(dict.fromkeys(make(rng, 2) for _ in range(300)))
    found = {text: _evaluated(spark, local, text) for text in texts}
    here = {text: value for text, value in found.items() if value is not None}
    frame = local_frame(spark, local).selectExpr(*(f"{text} AS p{i}" for i, text in enumerate(here)))
    answer = frame.toArrow()
    for i, (text, value) in enumerate(here.items()):
        assert value.type == schema_of(frame.schema).columns[i].type, text
        assert value.data.to_pylist() == answer[f"p{i}"].to_pylist(), text
        assert Table(pa.table({"v": value.data}), Schema((Column("v", value.type),))).num_rows == 60
    assert len(here) > len(texts) // (3 if values is SMALL else 5)


@pytest.mark.parametrize(
    "text", ["CAST(c10 AS INT)", "c2 DIV -1L", "date_add(c8, c1)", "upper(c6)", "c4 * c4 * c4 * c4", "c10 IS TRUE"]
)
def test_what_may_be_an_error_is_left_to_spark(spark: SparkSession, text: str) -> None:
    assert _evaluated(spark, Table(table(random.Random(2), 50), Schema((*map(_column, VALUES),))), text) is None


def _evaluated(spark: SparkSession, rows: Table, text: str) -> Value | None:
    """The value on the driver; None where it is left to Spark."""
    try:
        return evaluate(rows, Expr(text), SparkConstants(LazySession.of(spark)))
    except NotExact:
        return None


def _column(name: str) -> Column:
    return Column(name, parse(VALUES[name][0]))


WIDE = {
    "d1": ("decimal(36,2)", ["0.00", "0.01", "-1.25", "9999999999.99", "1.26", None]),
    "d2": ("decimal(38,5)", ["0.00000", "0.00995", "0.01005", "-1.25004", "1.25995", "-1.25005", None]),
    "d3": ("decimal(38,0)", ["0", "1", "-1", None]),
    "d4": ("decimal(38,38)", ["0." + "0" * 38, "0." + "4" * 38, "-0." + "9" * 38, None]),
}
"""No decimal holds all values of two of these."""


@pytest.mark.parametrize("one", WIDE)
@pytest.mark.parametrize("other", WIDE)
def test_decimals_that_no_type_holds(spark: SparkSession, one: str, other: str) -> None:
    pairs = [(a, b) for a in WIDE[one][1] for b in WIDE[other][1]]
    values = [[None if v is None else Decimal(v) for v in column] for column in zip(*pairs, strict=True)]
    types = [parse(WIDE[name][0]) for name in (one, other)]
    arrow = pa.table([pa.array(v, arrow_type(t)) for v, t in zip(values, types, strict=True)], ["a", "b"])
    local = Table(arrow, Schema((Column("a", types[0]), Column("b", types[1]))))
    texts = ["a = b", "a < b", "a >= b", "a <=> b", "a IN (b)", "coalesce(a, b)", "CASE WHEN a > b THEN a ELSE b END"]
    there = local_frame(spark, local).selectExpr(*(f"{text} AS p{i}" for i, text in enumerate(texts)))
    answer, schema = there.toArrow(), schema_of(there.schema)
    found = 0
    for i, text in enumerate(texts):
        here = _evaluated(spark, local, text)
        if here is not None:
            found += 1
            assert here.type == schema.columns[i].type, text
            assert here.data.to_pylist() == answer[f"p{i}"].to_pylist(), text
    assert found >= 4


def test_decimals_of_many_digits(spark: SparkSession) -> None:
    """Arrow moves the point of a large number without looking whether all of it still fits."""
    rng, types = random.Random(3), [parse("decimal(38,1)"), parse("decimal(38,20)")]
    numbers = [(_digits(rng, 1), _digits(rng, 20)) for _ in range(60)]
    columns = zip(*numbers, strict=True)
    arrow = pa.table([pa.array(v, arrow_type(t)) for v, t in zip(columns, types, strict=True)], ["a", "b"])
    schema = Schema((Column("a", types[0]), Column("b", types[1])))
    casts = [f"try_cast({name} AS decimal({digits}))" for name in "ab" for digits in ("38,22", "20,2", "38,37")]
    texts = [*casts, "a = b", "a < b", "a >= b", "a <=> b", "a IN (b)", "b < a"]
    there = local_frame(spark, Table(arrow, schema)).selectExpr(*(f"{text} AS p{i}" for i, text in enumerate(texts)))
    answer = there.toArrow()
    found = 0
    for row in range(arrow.num_rows):
        for i, text in enumerate(texts):
            here = _evaluated(spark, Table(arrow.slice(row, 1), schema), text)
            if here is not None:
                found += 1
                assert here.data.to_pylist() == answer[f"p{i}"].slice(row, 1).to_pylist(), (text, numbers[row])
    assert found > arrow.num_rows


@pytest.mark.parametrize("scale", [0, 7, 38])
@pytest.mark.parametrize(
    "text", ["a + a", "a - a", "a + 1", "a * 1", "a * a", "a / 3", "a % 7", "-a", "abs(a)", "round(a)"]
)
def test_decimals_of_the_most_digits(spark: SparkSession, text: str, scale: int) -> None:
    most = Decimal("9" * 38).scaleb(-scale, Context(prec=50))
    values = [most, most.copy_negate(), Decimal("4" * 38).scaleb(-scale, Context(prec=50)), Decimal(0), None]
    type = parse(f"decimal(38,{scale})")
    local = Table(pa.table([pa.array(values, arrow_type(type))], ["a"]), Schema((Column("a", type),)))
    for place, value in enumerate(values):
        row = local.replaced(local.arrow.slice(place, 1))
        here = _evaluated(spark, row, text)
        if here is not None:  # where Spark fails, it is asked
            there = local_frame(spark, row).selectExpr(f"{text} AS p").toArrow()["p"].to_pylist()
            assert here.data.to_pylist() == there, value


def _digits(rng: random.Random, scale: int) -> Decimal:
    digits = rng.choice([38, 37, 30, rng.randrange(1, 39)])
    return Decimal(rng.choice([1, -1]) * rng.randrange(10**digits)).scaleb(-scale, Context(prec=50))


def test_a_session_with_other_rules_is_asked(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.decimalOperations.allowPrecisionLoss", "false")
    schema = Schema((*map(_column, VALUES),))
    rows = Table(table(random.Random(2), 5), schema)
    assert _evaluated(spark, rows, "c9 AND c9") is not None
    assert _evaluated(other, rows, "c9 AND c9") is None
