"""Calls whose arguments are all constants, NULLs among them: the driver's value is Spark's, or is left to it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from sqlglot import exp

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.local import functions
from dbt_incremental_dd.local.expressions import constant, evaluate
from dbt_incremental_dd.local.functions.function import Function
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.sql_types import sql_type
from dbt_incremental_dd.relation.arrow_engine import ArrowEngine
from dbt_incremental_dd.relation.constants import Literals, SparkConstants
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace, local_frame
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import schema_of
from dbt_incremental_dd.trace.spark_to_arrow import to_arrow
from tests.local import calls, test_arrays, test_functions, test_json_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MANY = 60
"""Expressions that Spark answers at once."""


def _literals(frame: DataFrame, *, are_null: bool) -> dict[str, str]:
    """By column, a constant of its type: NULL, or the first row's value as a text that is cast."""
    types = {column.name: sql_type(column.type) for column in schema_of(frame.schema)}
    if are_null:
        return {name: f"CAST(NULL AS {type})" for name, type in types.items()}
    plain = [name for name, type in types.items() if not type.startswith(("ARRAY", "MAP", "STRUCT"))]
    (row,) = frame.limit(1).selectExpr(*(f"CAST({name} AS STRING) AS {name}" for name in plain)).collect()
    return {name: f"CAST({_quoted(row[name])} AS {types[name]})" for name in plain}


def _quoted(text: str | None) -> str:
    return "NULL" if text is None else "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _of_constants(call: str, literals: dict[str, str]) -> str | None:
    """The call over constants; None of one that names other columns, or that names its variables as they are named."""
    tree = Expr(call).tree.copy()
    if tree.find(exp.Lambda):
        return None
    for column in list(tree.find_all(exp.Column)):
        name = column.parts[0].name
        if name not in literals or "$" in literals[name]:
            return None
        value = Expr(literals[name]).tree.copy()
        for part in column.parts[1:]:
            value = exp.Dot(this=value, expression=exp.Identifier(this=part.name, quoted=False))
        if column is tree:
            return literals[name]
        column.replace(value)
    return Expr.of(tree).sql


def _computed(spark: SparkSession, sql: str) -> Value | None:
    try:
        return constant(Expr(sql), Literals(LazySession.of(spark)))
    except NotExact:
        return None


def _compare(spark: SparkSession, found: dict[str, Value]) -> None:
    texts = list(found)
    for start in range(0, len(texts), _MANY):
        some = texts[start : start + _MANY]
        frame = spark.range(1).selectExpr(*(f"{sql} AS c{number}" for number, sql in enumerate(some)))
        schema, (row,) = schema_of(frame.schema), to_arrow(frame).to_pylist()
        for number, sql in enumerate(some):
            value, column = found[sql], schema.columns[number]
            assert value.type == column.type, sql
            assert repr(value.data.as_py()) == repr(row[f"c{number}"]), sql


@pytest.mark.parametrize("are_null", [True, False], ids=["NULL", "value"])
@pytest.mark.parametrize("family", [*calls.HERE, "nested", "json"])
def test_every_call(spark: SparkSession, family: str, are_null: bool) -> None:
    frame, texts = _family(spark, family)
    literals = _literals(frame, are_null=are_null)
    made = [sql for text in texts if (sql := _of_constants(text, literals)) is not None]
    found = {sql: value for sql in made if (value := _computed(spark, sql)) is not None}
    _compare(spark, found)
    assert len(found) > len(made) / 2


@pytest.mark.parametrize("are_null", [True, False], ids=["NULL", "value"])
@pytest.mark.parametrize("family", calls.HERE)
def test_a_constant_among_columns(spark: SparkSession, family: str, are_null: bool) -> None:
    """Calls over several columns, of which each in turn is a constant."""
    frame, texts = _family(spark, family)
    literals = _literals(frame, are_null=are_null)
    made = set()
    for text in texts:
        names = sorted({column.parts[0].name for column in Expr(text).tree.find_all(exp.Column)})
        for name in names if len(names) > 1 else ():
            others = {other: other for other in names if other != name}
            made.add(_of_constants(text, {**others, name: literals[name]}))
    counts = test_functions._check(spark, sorted(made - {None}))
    assert not made or any(counts.values())


def _family(spark: SparkSession, family: str) -> tuple[DataFrame, list[str]]:
    """Rows, and calls over their columns."""
    if family == "nested":
        return test_arrays._given(spark)[1], test_arrays.CALLS
    if family == "json":
        return spark.sql("""SELECT '{"a": "7", "b": {"c": 1}, "l": [1.5]}' AS t"""), test_json_text.CALLS
    return local_frame(spark, test_functions._tame()), calls.HERE[family]


@pytest.mark.parametrize("mistake", [TypeError, StopIteration, KeyError])
def test_a_mistake_of_ours_leaves_the_expression_to_spark(
    mistake: type[Exception],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With a warning, which fails every other test."""

    def mistaken(*given: object) -> Value:
        raise mistake("not subscriptable")

    monkeypatch.setattr(logging.getLogger("dbt_incremental_dd.local.value"), "handlers", [])
    monkeypatch.setitem(functions._FUNCTIONS, "upper", Function(mistaken, 1, 1))
    table, constants = test_functions._tame(), SparkConstants(LazySession.of(spark))
    with pytest.raises(NotExact, match="not subscriptable"):
        evaluate(table, Expr("upper(t)"), constants)
    assert f"left to Spark: upper(t): {mistake.__name__}: " in caplog.text
    workspace = Workspace(LazySession.of(spark), Storage(str(tmp_path)))
    counted = table.arrow.append_column(DIFF, pa.array([1, 1], pa.int64()))
    rows = Relation.of(workspace, counted, Schema((*table.schema, DIFF_COLUMN)))
    monkeypatch.setattr(ArrowEngine, "filter", mistaken)
    assert rows.filter(Expr("t = 'a b'")).frame.count() == 1
