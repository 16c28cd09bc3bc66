"""Functions of arrays, maps and structs on the driver, and generators of them, beside Spark's."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.local import higher_order
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.functions import array_parts, array_sets, arrays, splitting
from dbt_incremental_dd.local.generators import NAMES, generated
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.workspace import local_frame
from dbt_incremental_dd.trace.spark_reader import schema_of
from dbt_incremental_dd.trace.spark_to_arrow import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DDL = """n INT, s STRING, w STRING, x DOUBLE, texts ARRAY<STRING>, longs ARRAY<BIGINT>, doubles ARRAY<DOUBLE>,
  days ARRAY<DATE>, decimals ARRAY<DECIMAL(9,2)>, deep ARRAY<ARRAY<INT>>, points ARRAY<STRUCT<x: INT, y: STRING>>,
  m MAP<STRING, INT>, by_day MAP<DATE, ARRAY<STRING>>, p STRUCT<x: INT, q: STRUCT<z: ARRAY<INT>, t: TIMESTAMP>>"""
_DAY = datetime.date(2024, 2, 29)
_MOMENT = datetime.datetime(2024, 3, 1, 12, 30)
_NAN = math.nan
_ROWS: list[tuple[Any, ...]] = [
    (
        *(0, "a", "a-b-", 1.5, ["b", None, "a", "b"], [3, None, -1], [0.5, _NAN, -0.0, 0.0], [_DAY]),
        *([Decimal("1.50"), None], [[1, 2], [], None, [1]], [(1, "u"), None, (None, None)]),
        *({"a": 1, "b": None}, {_DAY: ["q"]}, (1, ([1, 2], _MOMENT))),
    ),
    (*(1, "b", "", _NAN, [], [], [], [], [], [], [], {}, {}, (None, None)),),
    (*(2, None, None, None, None, None, None, None, None, None, None, None, None, None),),
    (
        *(-1, "", "--", 0.0, ["", "ä"], [1 << 40], [None], [None, _DAY], [None], [None], [(2, "v"), (2, "u")]),
        *({"": 5}, {_DAY: None}, (7, (None, None))),
    ),
]
CALLS = [
    *("array_contains(array('a', 'b'), s)", "array(1, 2)[n]", "map('a', 1)[s]", "named_struct('a', 1, 'b', 'x').a"),
    *("array_union(texts, array(s, w))", "array_except(texts, array(s))", "array_intersect(texts, array('b', NULL))"),
    *("array_union(deep, deep)", "array_except(longs, longs)", "arrays_overlap(texts, array('a'))"),
    *("arrays_overlap(texts, array('zz'))", "arrays_overlap(array(s), texts)", "arrays_overlap(longs, array(n * 1L))"),
    *("array_compact(texts)", "array_remove(texts, 'a')", "array_remove(longs, n)", "array_position(texts, s)"),
    *("array_position(longs, 3)", "slice(texts, 2, 2)", "slice(texts, -2, 5)", "slice(longs, 9, 1)", "flatten(deep)"),
    *("array_append(texts, s)", "array_prepend(longs, n * 1L)", "array_append(deep, NULL)", "try_element_at(texts, 2)"),
    *(
        "map('k', n, 'l', 2)",
        "map(n, s)",
        "map(concat('k', n), texts)['k0']",
        "isnull(texts)",
        "isnotnull(m)",
        "isnan(x)",
    ),
    *("transform(longs, e -> e * 2 + n)", "transform(texts, (t, i) -> concat(t, i))", "filter(texts, t -> t <> 'a')"),
    *(
        "filter(points, q -> q.x > 1)",
        "exists(longs, e -> e > 1)",
        "forall(longs, e -> e > 0)",
        "transform(longs, n -> n + 1)",
    ),
    *(
        "transform(deep, l -> size(l))",
        "filter(texts, (t, i) -> i > 0)",
        "exists(texts, t -> t = s)",
        "forall(deep, l -> true)",
    ),
    *("transform(points, q -> q.y)", "transform(deep, l -> transform(l, e -> e + n))", "transform(texts, t -> 1)"),
    *("texts[0]", "texts[n]", "texts[9]", "longs[-1]", "deep[0][1]", "points[0].y", "points[1].x", "m['a']", "m[s]"),
    *("by_day[DATE '2024-02-29'][0]", "p.x", "p.q.z[1]", "p.q.t", "get(texts, 1)", "element_at(texts, 1)"),
    *("element_at(texts, -1)", "element_at(longs, 7)", "element_at(m, 'b')", "element_at(m, s)", "size(texts)"),
    *(
        "cardinality(m)",
        "size(deep[0])",
        "array_size(points)",
        "array_contains(texts, 'a')",
        "array_contains(texts, s)",
    ),
    *("array_contains(longs, 3)", "array_contains(longs, n)", "array_contains(doubles, 0.0D)", "map_keys(m)"),
    *("array_contains(decimals, 1.5)", "map_values(by_day)", "map_contains_key(m, 'a')", "map_contains_key(m, s)"),
    *("array_join(texts, ',')", "array_join(texts, '; ', '?')", "array_join(longs, '-')", "array_join(days, ' ')"),
    *(
        "sort_array(texts)",
        "sort_array(texts, false)",
        "sort_array(longs)",
        "sort_array(doubles)",
        "sort_array(points)",
    ),
    *("sort_array(deep, false)", "array_sort(texts)", "array_sort(points)", "array_sort(decimals)", "array_max(texts)"),
    *("array_distinct(texts)", "array_distinct(doubles)", "array_distinct(deep)", "array_min(longs)"),
    *(
        "array_max(doubles)",
        "array_min(points)",
        "array_max(days)",
        "array(s, w)",
        "array(n, 1L)",
        "array(texts, NULL)",
    ),
    *(
        "array(n)",
        "named_struct('a', n, 'b', texts)",
        "named_struct('a', 1, 'b', s)",
        "split(w, '-')",
        "split(w, '-')[1]",
        "split(w, '[-]')",
        "split(w, concat('\\\\', '-'))",
        "split(w, '\\\\.')",
        "split(w, '[.]')",
    ),
    *(
        "size(split(w, '-'))",
        "element_at(split(w, '-'), -1)",
        "CASE WHEN n > 0 THEN texts END",
        "coalesce(longs, array(n * 1L))",
    ),
    *("if(n = 0, points, NULL)", "named_struct('a', s).a", "array(n, n + 1)[1]", "texts IS NULL", "nvl2(m, n, 9)"),
    *(
        "sort_array(map_keys(m))",
        "map_entries(m)",
        "map_from_entries(map_entries(m))",
        "map_from_entries(sort_array(map_entries(by_day)))",
        "map_from_entries(array(named_struct('a', coalesce(s, 'z'), 'b', n)))",
        "map_from_entries(array(named_struct('a', 'x', 'b', n), CASE WHEN n > 0 THEN named_struct('a', 'y', 'b', 7) END))",
        "sort_array(map_entries(by_day))",
        "texts = texts",
        "deep <=> deep",
        "p < p",
        "nullif(texts, split(w, '-'))",
        "texts <=> split(w, '-')",
        "array_join(split(w, '-'), '+')",
        "cast(texts AS ARRAY<STRING>)",
    ),
]
LEFT_TO_SPARK = [
    *(
        "array_contains(texts, 1)",
        "array_contains(days, s)",
        "m[n]",
        "array_position(longs, 1.5)",
        "by_day['2024-02-29']",
    ),
    *(
        "element_at(texts, 0)",
        "element_at(texts, n)",
        "points.y",
        "m = m",
        "concat(texts, texts)",
        "reverse(longs)",
    ),
    *(
        "transform(texts, t -> upper(t))",
        "aggregate(longs, 0L, (s, x) -> s + x)",
        "exists(longs, (e, i) -> i > 0)",
        "filter(longs, e -> NULL)",
        "transform(deep, e -> transform(e, e -> 1))",
        "array_contains(deep, array(1))",
        "array(texts, s)",
        "named_struct('a', NULL, 'b', n)",
    ),
    *(
        "cast(longs AS ARRAY<STRING>)",
        "cast(texts AS STRING)",
        "map(s, n)",
        "map(x, n)",
        "map('a', n, 'a', 1)",
        "array_union(doubles, doubles)",
        "slice(texts, 0, 1)",
        "slice(texts, n, 1)",
        "array_append(texts, n)",
        "array_contains(texts, NULL)",
        "hash(texts)",
    ),
    *(
        "greatest(texts, texts)",
        "coalesce(longs, array(n))",
        "texts IN (texts)",
        "array_join(deep, ',')",
        "sort_array(array(m))",
        "size(texts, 1)",
    ),
    *("to_json(p)", "concat_ws(',', texts)", "split(w, '[-+]')", "split(w, '\\\\d')", "split(w, '-', 1)"),
]
GENERATORS = {
    "explode(texts)": ["a"],
    "explode(m)": ["a", "b"],
    "explode(points)": ["a"],
    "explode(map_keys(m))": ["a"],
    "explode(array(n, n + 1))": ["a"],
    "explode(split(w, '-'))": ["a"],
    "posexplode(deep)": ["a", "b"],
    "posexplode(by_day)": ["a", "b", "c"],
    "inline(points)": ["a", "b"],
    "stack(2, n, s, -n, w)": ["a", "b"],
    "stack(3, 'x', texts, 'y', NULL, 'z')": ["a", "b"],
}


def _given(spark: SparkSession) -> tuple[Table, DataFrame]:
    frame = spark.createDataFrame(_ROWS, _DDL).coalesce(1)
    table = Table(to_arrow(frame), schema_of(frame.schema))
    return table, local_frame(spark, table)


@pytest.mark.parametrize("count", [4, 0])
def test_every_call_is_spark_s(spark: SparkSession, count: int) -> None:
    table, _ = _given(spark)
    table = table.replaced(table.arrow.slice(0, count))
    frame = local_frame(spark, table)
    constants = SparkConstants(LazySession.of(spark))
    theirs = frame.selectExpr(*(f"{call} AS c{number}" for number, call in enumerate(CALLS)))
    types, rows = schema_of(theirs.schema), to_arrow(theirs)
    for number, call in enumerate(CALLS):
        found = evaluate(table, Expr(call), constants)
        assert found.type == types.columns[number].type, call
        assert repr(found.data.to_pylist()) == repr(rows[f"c{number}"].to_pylist()), call


@pytest.mark.parametrize("call", LEFT_TO_SPARK)
def test_what_is_left_to_spark(spark: SparkSession, call: str) -> None:
    table, _ = _given(spark)
    with pytest.raises(NotExact):
        evaluate(table, Expr(call), SparkConstants(LazySession.of(spark)))


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("call", GENERATORS)
def test_generators(spark: SparkSession, call: str, outer: bool) -> None:
    table, frame = _given(spark)
    outputs = GENERATORS[call]
    found = generated(table, Expr(call), outputs, SparkConstants(LazySession.of(spark)), outer=outer)
    frame.createOrReplaceTempView("given")
    theirs = spark.sql(
        f"SELECT n, {', '.join(outputs)} FROM given LATERAL VIEW {'OUTER' if outer else ''} {call} g AS {', '.join(outputs)}"
    )
    wanted = to_arrow(theirs)
    assert found.arrow.select(["n", *outputs]).to_pylist() == wanted.to_pylist()
    assert found.schema.select(tuple(outputs)) == schema_of(theirs.schema).select(tuple(outputs))


def test_every_function_is_among_these() -> None:
    texts, families = " ".join(CALLS), (array_parts, array_sets, arrays, splitting, higher_order)
    assert all(f"{name}(" in texts for family in families for name in family.FUNCTIONS)
    assert {call.split("(")[0] for call in GENERATORS} == NAMES - {"json_tuple"}
