"""Relations, templates, refusals and dd_now(): text in, text out, without Spark."""

from __future__ import annotations

import pytest

from dbt_incremental_dd.core.errors import UnsupportedSQL
from dbt_incremental_dd.frontend.check import check
from dbt_incremental_dd.frontend.relations import relations, words
from dbt_incremental_dd.frontend.template import template
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
    assert {relation.key for relation in relations(sql)} == keys


def test_template_touches_nothing_else() -> None:
    text, keys = template("SELECT  s.t.k, '{}' -- {t}\nFROM s.t, s.t AS u WHERE x = 's.t'", ["s.t"])
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
        ("SELECT current_timestamp() FROM t", "current_timestamp", "dd_now"),
        ("SELECT current_date FROM t", "current_date", "dd_now"),
        ("SELECT unix_timestamp() FROM t", "unix_timestamp", "dd_now"),
        ("SELECT uuid() FROM t", "uuid", "xxhash64"),
        ("SELECT * FROM t TABLESAMPLE (5 PERCENT)", "TABLESAMPLE", "xxhash64"),
        ("SELECT 1; SELECT 2", "not one query", "single SELECT"),
        ("DELETE FROM t", "not one query", "single SELECT"),
        ("SELECT (FROM t", "cannot be parsed at line 1", "syntax"),
    ],
)
def test_refused_with_place_and_remedy(sql: str, construct: str, remedy: str) -> None:
    with pytest.raises(UnsupportedSQL, match=construct) as caught:
        check(sql)
    assert remedy in caught.value.remedy


def test_deterministic_relatives_are_allowed() -> None:
    check("SELECT unix_timestamp(ts), date_add(d, 1), hash(k), to_timestamp('2020-01-01') FROM t")


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
    assert (words(one) == words(other)) is same
