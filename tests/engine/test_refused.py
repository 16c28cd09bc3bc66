"""What cannot be maintained is refused before anything is written: the construct, its place, and what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.trace.read import schema_of
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "k INT, v BIGINT, s STRING, ts TIMESTAMP"
REFUSED = {
    "SELECT k,\n  rand() AS r FROM t": ("rand() gives another answer each time (line 2, column 3)", "xxhash64"),
    "SELECT uuid() AS u FROM t": ("uuid() gives another answer each time (line 1, column 8)", "hash"),
    "SELECT k FROM t WHERE ts > current_timestamp()": ("current_timestamp() gives another answer", "dd_now()"),
    "SELECT k FROM t WHERE ts > now()": ("now() gives another answer each time (line 1, column 28)", "dd_now()"),
    "SELECT current_date AS d, k FROM t": ("current_date() gives another answer", "dd_now()"),
    "SELECT monotonically_increasing_id() AS i FROM t": ("monotonically_increasing_id() gives", "hash"),
    "SELECT input_file_name() AS f FROM t": ("input_file_name() gives another answer", "deterministic"),
    "SELECT k FROM t\nTABLESAMPLE (10 PERCENT)": (
        "TABLESAMPLE gives another answer each time (line 2, column 1)",
        "hash",
    ),
    "SELECT k,\n nope FROM t": ("`nope` cannot be resolved. Did you mean one of the following? [`k`", "Correct"),
    "SELECT k FROM t\nWHERE x.v > 1": ("(line 2, column 7)", "Correct"),
    "SELECT nofn(k) AS x FROM t": ("Cannot resolve routine `nofn`", "Correct"),
    "SELECT k FROM t a JOIN t b ON a.v = b.v": ("Reference `k` is ambiguous", "Correct"),
    "SELECT k, sum(v) AS s FROM t": ("GROUP BY", "Correct"),
    "SELECT * FROM STREAM t": ("STREAM is for Spark's streams (line 1, column 15)", "relation itself"),
    "SELECT * FROM t WATERMARK ts DELAY OF INTERVAL 1 HOUR": (
        "WATERMARK is for Spark's streams (line 1, column 17)",
        "itself",
    ),
    "SELECT k FROM t; SELECT 1": ("the SQL is not one query", "single SELECT"),
    "INSERT INTO t SELECT * FROM t": ("the SQL is not one query", "single SELECT"),
    "SELECT k FROM t WHERE (v > 1": ("cannot be parsed at line 1", "syntax"),
    "SELECT k, v AS K FROM t": ("more than one column called k", "alias"),
    "SELECT v AS dd_diff FROM t": ("a column called dd_diff, which is reserved", "alias"),
    "SELECT k, try_parse_json(s) AS j FROM t": ("column j has a VARIANT", "to_json(j)"),
    "SELECT collate(s, 'UNICODE_CI') AS c FROM t": ("column c has a collation", "UTF8_BINARY"),
}


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(spark: SparkSession, sql: str) -> None:
    construct, remedy = REFUSED[sql]
    with pytest.raises(UnsupportedSQL) as refused:
        _compile(spark, sql)
    assert construct in refused.value.construct
    assert remedy in refused.value.remedy


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT k FROM t WHERE s COLLATE UTF8_LCASE = 'x'", "COLLATE"),
        ("SELECT upper(collate(s, 'UTF8_LCASE')) IS NULL AS n FROM t", "COLLATE"),
        ("SELECT count(j) AS n FROM t LATERAL VIEW explode(array(try_parse_json(s))) e AS j", "VARIANT"),
    ],
)
def test_what_equality_does_not_hold_for_is_recomputed(spark: SparkSession, sql: str, reason: str) -> None:
    assert any(reason in why for why in _compile(spark, sql))


def _compile(spark: SparkSession, sql: str) -> tuple[str, ...]:
    schema = schema_of(spark.createDataFrame([], DDL).schema)
    return tuple(compile_model(spark, "m", sql, {"t": Input("t", schema)}).plan.fallbacks)


def test_functions_of_the_users_own(spark: SparkSession, tmp_path: Path) -> None:
    """Deterministic ones are used, and a changed one changes the model; the others are refused."""
    world = World(spark, tmp_path, {"t": Table(DDL)})
    call = f"{world.schema}.f"
    world.model("m", f"SELECT k, {call}(k) AS x FROM {{t}}")
    world.insert("t", [(1, 1, "a", None), (2, None, "b", None)])
    for body in ("x + 1", "x * 10"):
        spark.sql(f"CREATE OR REPLACE FUNCTION {call}(x INT) RETURNS INT DETERMINISTIC RETURN {body}")
        world.step(fallback="error")
        world.check()
    for clause, body, reason in (
        ("NOT DETERMINISTIC", "CAST(rand() * x AS INT)", "is declared not deterministic (line 1, column 11)"),
        ("", f"(SELECT max(k) FROM {world.schema}.m)", "reads tables by itself"),
    ):
        spark.sql(f"CREATE OR REPLACE FUNCTION {call}(x INT) RETURNS INT {clause} RETURN {body}")
        with pytest.raises(UnsupportedSQL, match=r".*\.f\(\) ") as refused:
            world.step()
        assert reason in str(refused.value)
