"""What cannot be maintained is refused before anything is written: the construct, its place, and what to do instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "k INT, v BIGINT, s STRING, ts TIMESTAMP"
REFUSED = {
    "SELECT k,\n  rand() AS r FROM t": ("rand() gives another answer each time (line 2, column 3)", "xxhash64"),
    "SELECT uuid() AS u FROM t": ("uuid() gives another answer each time (line 1, column 8)", "hash"),
    "SELECT current_user() AS u FROM t": ("current_user() gives another answer each time (line 1, column 8)", "hash"),
    "SELECT k AS current_date, current_date AS d FROM t": (
        "both a column and a function of the clock",
        "with its table",
    ),
    "SELECT k FROM t WHERE ts > TIMESTAMP 'today UTC'": ("TIMESTAMP 'today utc'", "from_utc_timestamp"),
    "SELECT k, current_time() AS c FROM t": ("current_time() gives another answer", "localtimestamp"),
    "SELECT monotonically_increasing_id() AS i FROM t": ("monotonically_increasing_id() gives", "hash"),
    "SELECT input_file_name() AS f FROM t": ("input_file_name() gives another answer", "deterministic"),
    "SELECT k FROM t\nTABLESAMPLE (10 PERCENT)": (
        "TABLESAMPLE gives another answer each time (line 2, column 1)",
        "hash",
    ),
    "SELECT k,\n nope FROM t": ("`nope` cannot be resolved. Did you mean one of the following? [`k`", "Correct"),
    "SELECT k FROM t\nWHERE x.v > 1": ("(line 2, column 7)", "Correct"),
    "SELECT k,\n upper(k,\n  v) AS u FROM t": ("(line 2, column 2)", "Correct"),
    "SELECT k\nFROM t WHERE map(k, v) =  map(k, 1)": ("(line 2, column 14)", "Correct"),
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
    "SELECT k FROM t WHERE\n (v > 1 OR": ("cannot be parsed at line 2, column", "Correct the SQL's syntax"),
    "SELECT k,\n s || 'abc AS x FROM t": ("the quote ' is not closed (line 2, column 7)", "Close it"),
    "SELECT k, `s FROM t": ("the quote ` is not closed (line 1, column 11)", "Close it"),
    "SELECT k /* all FROM t": ("the comment is not closed (line 1, column 10)", "Close it"),
    "SELECT identifier('abs')(k) AS x FROM t": ("Spark knows this syntax", "another way"),
    "SELECT * EXCEPT (k, v, s, ts) FROM t": ("has no column", "one at least"),
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


def test_what_spark_refuses_by_any_error(spark: SparkSession) -> None:
    """This one is no AnalysisException, since Spark 4.3."""
    with pytest.raises(UnsupportedSQL) as refused:
        _compile(spark, "SELECT k, current_timestamp(9) AS c FROM t")
    assert re.fullmatch(r"\[[A-Z0-9_.]+\] \w.+", refused.value.construct)
    assert refused.value.remedy


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


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM t WHERE s COLLATE UTF8_LCASE = 'x'",
        "SELECT k, sum(sum(v) OVER (ORDER BY k)) OVER (ORDER BY s) AS x FROM t GROUP BY k, v, s",
        "SELECT arrays_zip(array(k), array(v)) AS x FROM t, LATERAL range(2) r",
        "SELECT k FROM range(3) r JOIN t ON r.id = t.k",
        "FROM t |> WHERE v > 1 |> SELECT k",
        "SELECT count(j) AS n FROM t LATERAL VIEW explode(array(try_parse_json(s))) e AS j",
        "SELECT k, make_ym_interval(k) = make_ym_interval(1) AS b FROM t GROUP BY k, make_ym_interval(k)",
    ],
)
def test_what_is_said_is_said_in_the_querys_words(spark: SparkSession, sql: str) -> None:
    """Nothing of the plan's or the parser's own: their columns, classes, and the terminal's escapes."""
    try:
        said = _compile(spark, sql)
    except UnsupportedSQL as refused:
        said = (refused.construct,)
    for line in said:
        assert line.strip()
        assert not re.search(r"(?<!\w)\(\)", line), line
        assert not re.search(r"\x1b|\[[04]m|\bc\d+\b|sqlglot|ANONYMOUS|Anonymous|INTERVALSPAN|Error\b", line), line


def test_aggregates_beside_window_functions_that_are_written_alike(spark: SparkSession) -> None:
    assert not _compile(spark, "SELECT k, count(*) AS n, count(*) OVER () AS o FROM t GROUP BY k")
    assert not _compile(spark, "SELECT k, sum(v) AS n, sum(sum(v)) OVER (ORDER BY sum(v)) AS o FROM t GROUP BY k")


def _compile(spark: SparkSession, sql: str) -> tuple[str, ...]:
    schema = schema_of(spark.createDataFrame([], DDL).schema)
    return tuple(compile_model(LazySession.of(spark), "m", parsed(sql), {"t": Input("t", schema)}).plan.fallbacks)


def test_functions_of_the_users_own(spark: SparkSession, tmp_path: Path) -> None:
    """Deterministic ones are used, and a changed one changes the model; the others are refused."""
    world = World(spark, tmp_path, {"t": Table(DDL)})
    call = f"{world.schema}.f"
    world.model("m", f"SELECT k, {call}(k) AS x FROM {{t}}")
    world.model("constant", f"SELECT k, {call}(2) AS x FROM {{t}}")
    world.model("joined", f"SELECT t.k, f.x FROM {{t}} t JOIN (SELECT {call}(3) AS x) f ON f.x > t.k")
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
