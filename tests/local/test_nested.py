"""Nested values are numbered by Spark's equality."""

from __future__ import annotations

import datetime
import decimal
import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
)
from dbt_incremental_dd.local.nested import decoded, encoded, numbers
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.logical.sql_types import is_orderable, sql_type
from dbt_incremental_dd.relation.workspace import local_frame
from dbt_incremental_dd.trace.arrow import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POINT = Struct((Field("x", INTEGER), Field("y", STRING)))
TYPES: dict[Type, list[Any]] = {
    Array(STRING): [None, [], [None], ["a"], ["a", "b"], ["b", "a"], [None, "a"], ["ab"], ["a", None]],
    Array(Array(INTEGER)): [None, [], [[]], [None], [[1], [2]], [[1, 2]], [[1], [2], []]],
    POINT: [None, {"x": None, "y": None}, {"x": 1, "y": None}, {"x": None, "y": "1"}, {"x": 1, "y": "1"}],
    Array(POINT): [None, [], [None], [{"x": None, "y": None}], [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}]],
    Array(DOUBLE): [None, [0.0], [-0.0], [float("nan")], [-float("nan")], [1.5, None]],
    Array(Decimal(5, 2)): [None, [None], []],
    Map(STRING, INTEGER): [None, [], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)], [("b", 2), ("a", 1)]],
    Struct((Field("m", Map(STRING, Array(INTEGER))),)): [None, {"m": None}, {"m": []}, {"m": [("a", [1])]}],
}
ORDERED = {
    **{type: values for type, values in TYPES.items() if is_orderable(type)},
    Array(LONG): [None, [], [None], [-1], [-1, 0], [1 << 40], [256], [255, 1], [255], [1, None], [1, -(1 << 60)]],
    Array(BOOLEAN): [[True], [False], [None], [True, False]],
    Array(BINARY): [[b"\xff"], [b"a"], [b"a", b""], [b""]],
    Array(STRING): [["ä"], ["z"], ["Z"], ["a", "b"], ["ab"], [None, "a"], ["\U0001f600"], ["\uffff"]],
    Array(DATE): [[datetime.date(2024, 1, 1)], [datetime.date(1969, 12, 31)], [None], None],
    Array(Decimal(5, 2)): [[decimal.Decimal("1.50")], [decimal.Decimal("-1.51")], [None], []],
    Struct((Field("a", DOUBLE), Field("b", BOOLEAN))): [
        {"a": value, "b": other} for value in (None, math.nan, -math.inf, 0.0, -0.0, 1.5) for other in (None, True)
    ],
}


@pytest.mark.parametrize("type", TYPES, ids=sql_type)
def test_equal_values_have_one_number(spark: SparkSession, type: Type) -> None:
    rng = random.Random(1)
    values = [rng.choice(TYPES[type]) for _ in range(60)] + TYPES[type]
    array = pa.array(values, arrow_type(type))
    first, second = numbers(array.slice(3, 40), array.slice(43))
    found = pa.concat_arrays([first, second])
    schema = Schema((Column("v", type), Column("n", LONG)))
    frame = local_frame(spark, Table(pa.table({"v": array.slice(3), "n": found}), schema))
    groups = [tuple(row) for row in frame.selectExpr("v", "n").groupBy("v").agg(F.min("n"), F.count("*")).collect()]
    spark_s = {number: count for _, number, count in groups}  # of those of NULL the least is NULL
    assert len(groups) == len(spark_s)
    assert {one["values"]: one["counts"] for one in found.value_counts().to_pylist()} == spark_s


@pytest.mark.parametrize("type", ORDERED, ids=sql_type)
def test_their_order_is_spark_s(spark: SparkSession, type: Type) -> None:
    array = pa.array(ORDERED[type], arrow_type(type))
    (found,) = numbers(array)
    frame = local_frame(
        spark, Table(pa.table({"v": array, "n": found}), Schema((Column("v", type), Column("n", LONG))))
    )
    ranked = frame.selectExpr("n", "dense_rank() OVER (ORDER BY v) AS place").collect()
    ours = sorted((-1 if number is None else number, place) for number, place in ranked)
    assert [place for _, place in ours] == sorted(place for _, place in ranked)
    assert pc.count_distinct(found, mode="all").as_py() == len({place for _, place in ranked})


@pytest.mark.parametrize("type", TYPES, ids=sql_type)
def test_numbers_become_values_again(type: Type) -> None:
    values = [*TYPES[type], *reversed(TYPES[type])]
    table = pa.table({"k": list(range(len(values))), "v": pa.chunked_array([pa.array(values, arrow_type(type))])})
    numbered, known = encoded(table, table.column_names)
    assert pa.types.is_integer(numbered["v"].type)
    found = decoded(numbered, known)
    assert [str(first) for first in numbers(found["v"])] == [str(first) for first in numbers(table["v"])]
    assert found.schema == table.schema and found["v"].null_count == table["v"].null_count


def test_no_rows() -> None:
    nothing = pa.array([], pa.list_(pa.string()))
    assert [len(found) for found in numbers(nothing, nothing)] == [0, 0]
    table, known = encoded(pa.table({"v": nothing}), ["v"])
    assert decoded(table, known).schema == pa.schema([("v", pa.list_(pa.string()))])
