"""Relations, templates, refusals and dd_now(): text in, text out, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import INTEGER
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.check import check
from dbt_incremental_dd.frontend.clock import with_run_time
from dbt_incremental_dd.frontend.lower import lower_alone
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.frontend.template import template
from dbt_incremental_dd.frontend.unfolded import unfolded
from dbt_incremental_dd.logical.dialect import VerbatimSpark
from dbt_incremental_dd.logical.now import bind_now, uses_now


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT * FROM A.B", {"a.b"}),
        ("SELECT * FROM `a`.`b c` x JOIN d ON true", {"a.b c", "d"}),
        ("WITH t AS (SELECT * FROM s.t) SELECT * FROM t", {"s.t"}),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", {"t"}),
        ("SELECT * FROM a WHERE k IN (SELECT k FROM b WHERE EXISTS (SELECT 1 FROM c))", {"a", "b", "c"}),
        ("SELECT * FROM range(10), a", {"a"}),
    ],
)
def test_relations(sql: str, keys: set[str]) -> None:
    assert {relation.key for relation in parsed(sql).relations} == keys


def test_template_touches_nothing_else() -> None:
    text, keys = template(parsed("SELECT  s.t.k, '{}' -- {t}\nFROM s.t, s.t AS u WHERE x = 's.t'"), ["s.t"])
    assert keys == ("s.t",)
    assert text.format("v") == "SELECT  t.k, '{}' -- {t}\nFROM v AS `t`, v AS u WHERE x = 's.t'"


def test_dd_now_is_bound_outside_of_strings_only() -> None:
    sql = "SELECT dd_now(), 'dd_now()' -- dd_now()\nFROM t WHERE ts > DD_NOW( )"
    assert bind_now(sql, 5).count("timestamp_millis(5L)") == 2
    assert uses_now(sql) and not uses_now("SELECT 'dd_now()'")


@pytest.mark.parametrize(
    ("sql", "construct", "remedy"),
    [
        ("SELECT 1,\n rand() FROM t", r"rand\(\).*\(line 2, column 2\)", "xxhash64"),
        ("SELECT uuid() FROM t", "uuid", "xxhash64"),
        ("SELECT hour(current_time(3)) FROM t", r"current_time\(\) gives.*column 13", "localtimestamp"),
        ("SELECT cast('now' AS TIMESTAMP) FROM t", r"cast\('now'\) gives", "current_timestamp"),
        ("SELECT 'Today'::date, 1 FROM t", r"cast\('Today'\) gives", "current_date"),
        ("SELECT to_date('yesterday') FROM t", r"to_date\('yesterday'\) gives.*column 8", "current_date"),
        ("SELECT * FROM t TABLESAMPLE (5 PERCENT)", "TABLESAMPLE", "xxhash64"),
        ("SELECT 1; SELECT 2", "not one query", "single SELECT"),
        ("DELETE FROM t", "not one query", "single SELECT"),
        ("SELECT (FROM t", "cannot be parsed at line 1", "syntax"),
    ],
)
def test_refused_with_place_and_remedy(sql: str, construct: str, remedy: str) -> None:
    with pytest.raises(UnsupportedSQL, match=construct) as caught:
        check(parsed(sql))
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("sql", "meaning"),
    [
        ("SELECT current_timestamp, NOW( ), `now`() FROM t", "SELECT dd_now(), dd_now(), dd_now() FROM t"),
        ("SELECT `current_date` FROM t", "SELECT CAST(dd_now() AS DATE) FROM t"),
        ("SELECT system.builtin.now(), mine.now() FROM t", "SELECT dd_now(), mine.now() FROM t"),
        ("SELECT current_timestamp::timestamp AS t", "SELECT dd_now()::timestamp AS t"),
        ("SELECT curdate() - 1, Current_Date", "SELECT CAST(dd_now() AS DATE) - 1, CAST(dd_now() AS DATE)"),
        ("SELECT localtimestamp()", "SELECT CAST(dd_now() AS TIMESTAMP_NTZ)"),
        (
            "SELECT current_date() AS current_date, current_date - 1 FROM t",
            "SELECT CAST(dd_now() AS DATE) AS current_date, CAST(dd_now() AS DATE) - 1 FROM t",
        ),
        ("SELECT current_timestamp AS current_timestamp", "SELECT dd_now() AS current_timestamp"),
        ("SELECT unix_timestamp()", "SELECT unix_timestamp(dd_now())"),
        (
            "SELECT TIMESTAMP 'Now', DATE'tomorrow'",
            "SELECT CAST(dd_now() AS TIMESTAMP), date_add(CAST(dd_now() AS DATE), 1)",
        ),
        ("SELECT a FROM t ORDER BY now()", "SELECT a FROM t ORDER BY dd_now()"),
    ],
)
def test_the_clock_is_the_time_of_the_run(sql: str, meaning: str) -> None:
    assert with_run_time(parsed(sql), {}).sql == meaning
    check(parsed(sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.current_date, 1 AS current_timestamp, 2 current_date FROM t",
        "SELECT current_time, `current_date` FROM (SELECT 1 AS current_time, 2 AS `current_date`)",
        "SELECT 'now()', now, current_timestamp(1) -- now()\nFROM t /* current_date */",
        "SELECT unix_timestamp(ts), TIMESTAMP '2020-01-01' FROM t",
    ],
)
def test_what_only_looks_like_the_clock_is_left_alone(sql: str) -> None:
    assert with_run_time(parsed(sql), {}) is parsed(sql)


def test_a_name_that_may_be_a_column_or_the_clock_is_refused() -> None:
    with pytest.raises(UnsupportedSQL, match=r"current_time gives another answer.*column 8"):
        with_run_time(parsed("SELECT current_time FROM t"), {})
    sql = "SELECT k,\n current_date FROM (SELECT k, day AS current_date FROM t)"
    with pytest.raises(UnsupportedSQL, match=r"both a column and a function.*\(line 2, column 2\)"):
        with_run_time(parsed(sql), {})


def test_deterministic_relatives_are_allowed() -> None:
    check(parsed("SELECT unix_timestamp(ts), date_add(d, 1), hash(k), to_timestamp('2020-01-01') FROM t"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("select 1 as x", "select\n  1   as x -- one", True),
        ("select 'a b' as x", "select 'a  b' as x", False),
        ("select 1 -- c\n + 2 as x", "select 1 -- c + 2 as x\n as x", False),
        ("select `a` from t", "select a from t", False),
    ],
)
def test_spaces_and_comments_change_nothing_but_literals_do(one: str, other: str, same: bool) -> None:
    assert (parsed(one).words == parsed(other).words) is same


def test_a_text_is_split_and_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked of a query. With the run's time it is another text."""
    seen: list[tuple[str, str]] = []
    tokenize, parse = VerbatimSpark.tokenize, VerbatimSpark.Parser.parse

    def counted_tokenize(self: VerbatimSpark, sql: str, *args: Any) -> Any:
        seen.append(("tokenized", sql))
        return tokenize(self, sql, *args)

    def counted_parse(self: Any, tokens: Any, sql: str) -> Any:
        seen.append(("parsed", sql))
        return parse(self, tokens, sql)

    monkeypatch.setattr(VerbatimSpark, "tokenize", counted_tokenize)
    monkeypatch.setattr(VerbatimSpark.Parser, "parse", counted_parse)
    parsed.cache_clear()
    sql = "SELECT x, now() AS n FROM a JOIN b USING (x) WHERE x > 1"
    timed = sql.replace("now()", "dd_now()")
    for _ in range(2):
        query = parsed(sql)
        check(query)
        assert query.called == {"now"} and query.words and not query.uses_pipes
        schema = Schema((Column("x", INTEGER),))
        inputs = {relation.key: Input(relation.key, schema) for relation in query.relations}
        for text in (query, with_run_time(query, inputs)):
            template(text, inputs)
            lower_alone(text, inputs, _unasked)
    wanted = [(what, text) for text in (sql, timed) for what in ("tokenized", "parsed")]
    assert [one for one in seen if one in wanted] == wanted


def _unasked(template: str, relations: tuple[Schema, ...]) -> Schema:
    raise UnsupportedSQL("no types without Spark")


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE r AS (SELECT x FROM a UNION SELECT r.x FROM r JOIN a USING (x)) SELECT x FROM r",
        "WITH RECURSIVE b AS (SELECT x FROM a), r(x) AS (SELECT b.x FROM b UNION (SELECT x FROM s)), "
        "s AS (SELECT x FROM r) SELECT x FROM r UNION ALL SELECT x FROM s",
    ],
)
def test_a_recursion_is_lowered_and_unfolded_without_a_change_of_its_tree(sql: str) -> None:
    schema = Schema((Column("x", INTEGER),))
    inputs, query = {"a": Input("a", schema)}, parsed(sql)
    before = [(id(node), id(node.parent), node.arg_key, node.index) for node in query.tree.walk()]
    lower_alone(query, inputs, lambda template, relations: schema)
    assert unfolded(query, inputs, lambda template, relations: schema).loops
    assert [(id(node), id(node.parent), node.arg_key, node.index) for node in query.tree.walk()] == before
