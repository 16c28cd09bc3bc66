"""Functions of JSON on the driver, beside Spark's: of what each answers, the answer is Spark's."""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import STRING
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.functions import json_text, json_writer
from dbt_incremental_dd.local.generators import generated
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.workspace import local_frame
from dbt_incremental_dd.trace.spark_reader import schema_of
from dbt_incremental_dd.trace.spark_to_arrow import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALLS = [
    "json_array_length(t)",
    *("get_json_object(t, '$.a')", "get_json_object(t, '$.b.c')", "get_json_object(t, '$.l[1]')"),
    *("get_json_object(t, '$.l[0].c')", "get_json_object(t, \"$['a']\")", "get_json_object(t, '$[0]')"),
    *("get_json_object(t, '$.b')", "get_json_object(t, '$.l')", "CAST(get_json_object(t, '$.a') AS INT)"),
    *("from_json(t, 'a STRING, b STRUCT<c: INT>')", "from_json(t, 'a INT, l ARRAY<DOUBLE>').l[0]"),
    *(
        "from_json(t, 'STRUCT<a: DECIMAL(6,2), b: MAP<STRING, STRING>>')",
        "to_json(from_json(t, 'a STRING, l ARRAY<INT>'))",
    ),
]
PLAIN = [
    *(None, '{"a": "x", "b": {"c": 1}}', '{"a": null, "b": null}', "{}", '{"a": "é 😀 \\"\\\\ \\n\\t/"}'),
    *('{"a": "7", "l": []}', ' {"a" : "1" , "x": [true, false, null]} ', '{"a": "\\u00e9\\ud83d\\ude00"}'),
]
ODD = [
    *(
        "",
        " ",
        "bad",
        "null",
        "1",
        '"text"',
        "true",
        "[]",
        "[1, 2]",
        '[{"a": 1}]',
        '{"a": 1',
        '{"a": 1} x',
        '{"a": 1}}',
    ),
    *('{"a": 1.50}', '{"a": 1e2}', '{"a": 1E400}', '{"a": -0}', '{"a": -0.0}', '{"a": 123456789012345678901234567890}'),
    *('{"a": 0.1, "l": [1.0, 2.5e-7]}', '{"a": 12345678.9}', '{"a": [1, {"x": 1.10}, "y", null]}', '{"a": {"k": "v"}}'),
    *(
        '{"a": true}',
        "{'a': 'x'}",
        "{a: 1}",
        '{"a": "\t"}',
        '{"a": "\\u0001"}',
        '{"b": {"c": "\\u001f"}}',
        '{"a": 1, "a": 2}',
    ),
    *('{"l": [null, null]}', '{"l": [{"c": null}, null]}', "[null]"),
    *('{"l": [0, 1, 2]}', '{"l": [[1], [2]]}', '{"l": [{"c": 5}, {"c": 6}]}', '{"l": {"0": 1}}', '{"b": [{"c": 1}]}'),
    *(
        '{"b": {"c": "x"}}',
        '{"b": {"c": 2147483648}}',
        '{"b": {"c": 1.0}}',
        '{"A": 1}',
        '{"a": NaN}',
        '{"a": "\\ud83d"}',
    ),
    *(
        '{"b": {"k": 1, "m": "x", "n": null}}',
        '{"a": 12345.678}',
        '{"a": "1.5"}',
        '\ufeff{"a": 1}',
        '{"a":1,}',
        '{"": 1}',
    ),
]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcl"), inner, max_size=3),
    max_leaves=6,
)


def _checked(spark: SparkSession, texts: list[str | None]) -> Counter[str]:
    """Which texts each call was answered for; every answer is compared."""
    schema = Schema((Column("t", STRING),))
    frame = local_frame(spark, Table(pa.table({"t": pa.array(texts, pa.string())}), schema))
    theirs = frame.selectExpr(*(f"{call} AS c{number}" for number, call in enumerate(CALLS)))
    types, answers = schema_of(theirs.schema), to_arrow(theirs)
    constants, answered = SparkConstants(LazySession.of(spark)), Counter[str]()
    for number, call in enumerate(CALLS):
        for place, text in enumerate(texts):
            rows = Table(pa.table({"t": pa.array([text], pa.string())}), schema)
            try:
                found = evaluate(rows, Expr(call), constants)
            except NotExact:
                continue
            assert found.type == types.columns[number].type, call
            wanted = answers[f"c{number}"][place].as_py()
            assert repr(found.data[0].as_py()) == repr(wanted), (call, text)
            answered[str(text)] += 1
    return answered


def test_plain_and_odd_texts(spark: SparkSession) -> None:
    answered = _checked(spark, [*PLAIN, *ODD])
    assert all(answered[str(text)] >= len(CALLS) - 6 for text in PLAIN), answered
    assert sum(answered.values()) > 0.6 * len(CALLS) * len(ODD)


@settings(max_examples=25)
@given(st.lists(_JSON.map(lambda value: json.dumps({"a": value, "b": {"c": value}})), min_size=5, max_size=20))
def test_random_values(spark: SparkSession, texts: list[str]) -> None:
    _checked(spark, list(texts))


@pytest.mark.parametrize("path", ["a", "$", "$.", "$.a[*]", "$..a", "$.*", "$[a]", "$.a b", "$['a.b']", "$[-1]", ""])
def test_other_paths_are_left_to_spark(spark: SparkSession, path: str) -> None:
    rows = Table(pa.table({"t": ['{"a": 1}']}), Schema((Column("t", STRING),)))
    quoted = path.replace("'", "\\'")
    with pytest.raises(NotExact):
        evaluate(rows, Expr(f"get_json_object(t, '{quoted}')"), SparkConstants(LazySession.of(spark)))


def test_tuples_are_spark_s(spark: SparkSession) -> None:
    texts = [*PLAIN, *(text for text in ODD if text[:1] in "{[" or not text.strip())]
    constants = SparkConstants(LazySession.of(spark))
    answered = 0
    for text in texts:
        table = Table(pa.table({"t": pa.array([text], pa.string())}), Schema((Column("t", STRING),)))
        local_frame(spark, table).createOrReplaceTempView("given")
        try:
            found = generated(table, Expr("json_tuple(t, 'a', 'l')"), ["x", "y"], constants, outer=False)
        except NotExact:
            continue
        theirs = spark.sql("SELECT t, x, y FROM given LATERAL VIEW json_tuple(t, 'a', 'l') g AS x, y")
        assert found.arrow.to_pylist() == to_arrow(theirs).to_pylist(), text
        answered += 1
    assert answered > 0.6 * len(texts)


def test_to_json(spark: SparkSession) -> None:
    ddl = """s STRUCT<i: INT, b: BIGINT, t: STRING, f: BOOLEAN, d: DATE, x: DOUBLE, e: DECIMAL(12,3), n: STRUCT<`a"b`: INT>>,
      l ARRAY<STRUCT<k: STRING, v: DECIMAL(30,10)>>, m MAP<STRING, ARRAY<DOUBLE>>"""
    day = datetime.date(2024, 2, 29)
    rows = [
        (
            (1, -(1 << 62), 'é"\\\n', True, day, 1.5, Decimal("1.500"), (1,)),
            [("k", Decimal("0E-10")), None],
            {"a": [0.1]},
        ),
        ((None,) * 8, [], {}),
        (None, None, None),
        ((0, 0, "", False, datetime.date(1, 1, 1), math.nan, Decimal("-0.001"), None), [(None, None)], {"é": None}),
        ((0, 0, "\x7f", None, None, 1e21, Decimal(0), (None,)), [("", Decimal("1E+3"))], {"": [math.inf, None, -0.0]}),
        ((0, 0, "/", None, None, 1e-5, None, (None,)), [("", Decimal("12.5"))], {"x": []}),
    ]
    frame = spark.createDataFrame(rows, ddl).coalesce(1)
    table = Table(to_arrow(frame), schema_of(frame.schema))
    constants, answered = SparkConstants(LazySession.of(spark)), 0
    for place in range(len(rows)):
        row = table.replaced(table.arrow.slice(place, 1))
        theirs = local_frame(spark, row).selectExpr("to_json(s)", "to_json(l)", "to_json(m)").collect()[0]
        for name, wanted in zip("slm", theirs, strict=True):
            try:
                found = evaluate(row, Expr(f"to_json({name})"), constants)
            except NotExact:
                continue
            assert found.data.to_pylist() == [wanted]
            answered += 1
    assert answered >= 3 * len(rows) - 1


@pytest.mark.parametrize(
    "call", ["to_json(t)", "to_json(named_struct('a', t), map('x', 'y'))", "from_json(t, 'a FLOAT')"]
)
def test_what_is_left_to_spark(spark: SparkSession, call: str) -> None:
    rows = Table(pa.table({"t": ['{"a": 1}']}), Schema((Column("t", STRING),)))
    with pytest.raises(NotExact):
        evaluate(rows, Expr(call), SparkConstants(LazySession.of(spark)))


def test_every_function_is_among_these() -> None:
    assert all(any(f"{name}(" in call for call in CALLS) for name in (*json_text.FUNCTIONS, *json_writer.FUNCTIONS))
