"""Predicates on the driver are what Spark says they are, for every value."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.render.rows import Rows, filtered
from dbt_incremental_dd.trace.local import Local
from dbt_incremental_dd.trace.predicate import truth

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    "string": ["'a'", "''", "'ab'", "concat('a', 'b')", "NULL", "1"],
    "date": ["DATE '1993-07-01'", "CAST('1993-04-01' AS DATE) + INTERVAL '3' MONTH", "'1993-07-01'", "NULL"],
    "boolean": ["TRUE", "FALSE", "NULL"],
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


def table(rng: random.Random, rows: int) -> pa.Table:
    """Rows of every value, and of every pair of values now and then."""
    data = {name: [rng.choice(values) for _ in range(rows)] for name, (_, values) in VALUES.items()}
    types = {"integer": pa.int32(), "long": pa.int64(), "short": pa.int16(), "string": pa.string()}
    types |= {"date": pa.date32(), "boolean": pa.bool_(), "double": pa.float64()}
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
    schema = Schema(tuple(Column(name, kind) for name, (kind, _) in VALUES.items()))
    local = Local(spark, table(rng, 200), schema)
    predicates = [predicate(rng) for _ in range(400)]
    found = {i: truth(local, Expr(text)) for i, text in enumerate(predicates)}
    here = {i: mask.to_pylist() for i, mask in found.items() if mask is not None}
    answer = local.frame.selectExpr(*(f"{predicates[i]} AS p{i}" for i in here)).toArrow()
    for i, mask in here.items():
        assert mask == answer[f"p{i}"].to_pylist(), predicates[i]
    assert len(here) > 150


def test_rows_are_filtered_where_they_are(spark: SparkSession) -> None:
    rows = Rows(Local(spark, table(random.Random(2), 50), Schema((*map(_column, VALUES),))), 50)
    kept = filtered(rows, Expr("c6 = 'a' OR c1 > 0"))
    assert kept.local is not None
    assert kept.local.num_rows == kept.estimate == rows.frame.where("c6 = 'a' OR c1 > 0").count() > 0
    assert filtered(rows, Expr("upper(c6) = 'A'")).local is None


def _column(name: str) -> Column:
    return Column(name, VALUES[name][0])
