"""Keywords are names where Spark takes them as names."""

from __future__ import annotations

import re

import pytest
from sqlglot import exp

from dbt_incremental_dd.frontend.parsed import parsed

WORDS = [
    *("alter", "any", "collate", "create", "cube", "describe", "drop", "fetch", "for", "grant", "if", "insert", "into"),
    *("limit", "lock", "offset", "outer", "overlaps", "revoke", "rollback", "rollup", "serdeproperties"),
    *("tablesample", "uncache", "values", "window", "filter", "first", "date", "user"),
]
PLACES = [
    "SELECT {0} FROM t",
    "SELECT b, {0}, max({0}) FROM t GROUP BY b, {0}",
    "SELECT x.{0} + 1 AS {0} FROM t x WHERE {0} > 1 AND b = {0} ORDER BY {0}",
    "SELECT CASE WHEN {0} > 1 THEN {0} ELSE -{0} * 2 END FROM t WHERE {0} IS NULL OR {0} IN (1, 2) OR {0} BETWEEN 1 AND 2",
    "SELECT sum({0}) OVER (PARTITION BY {0}, b ORDER BY {0} DESC) FROM t",
    "SELECT transform(a, {0} -> {0} + 1), {0} AS c FROM (SELECT b AS {0} FROM t) u JOIN v ON u.{0} = v.{0}",
]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("place", range(len(PLACES)))
def test_a_word_is_a_name(word: str, place: int) -> None:
    sql = PLACES[place].format(word)
    found = [name.name for name in parsed(sql).tree.find_all(exp.Identifier)]
    assert found.count(word) == len(re.findall(rf"\b{word}\b", sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 2",
        "SELECT s LIKE ANY ('a', 'b'), any(b), if(a > 1, 2, 3) FROM t",
        "SELECT k FROM t GROUP BY CUBE (k), ROLLUP (a)",
        "SELECT * FROM t PIVOT (sum(v) FOR k IN (1, 2))",
        "SELECT overlay(s PLACING 'x' FROM 1 FOR 2), s COLLATE utf8_lcase FROM t TABLESAMPLE (10 ROWS)",
        "SELECT * FROM a FULL OUTER JOIN b USING (k) LATERAL VIEW OUTER explode(x) e",
        "SELECT * FROM (VALUES -1, 2) v WHERE x IN (VALUES (1), (2))",
    ],
)
def test_a_word_of_a_clause_is_none(sql: str) -> None:
    names = {name.name for name in parsed(sql).tree.find_all(exp.Identifier)}
    assert not names & {word.upper() for word in WORDS}
