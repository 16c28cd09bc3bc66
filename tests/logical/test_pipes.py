"""What a query written with ``|>`` reads and calls."""

from __future__ import annotations

import pytest

from dbt_incremental_dd.frontend.parsed import NotParsed, parsed

READ = {
    "TABLE t |> UNION ALL TABLE a.u": ({"t", "a.u"}, set()),
    "FROM t |> SET x = 1, y = f(x) + (SELECT max(k) FROM u)": ({"t", "u"}, {"f", "max"}),
    "FROM t |> EXTEND rand() AS r |> DROP r, k": ({"t"}, {"rand"}),
    "FROM t |> AGGREGATE sum(v) AS s GROUP BY year(d) AS y |> ORDER BY abs(s) |> OFFSET 1": (
        {"t"},
        {"sum", "year", "abs"},
    ),
    "FROM t |> AGGREGATE GROUP BY lower(k)": ({"t"}, {"lower"}),
    "FROM t |> AS x |> JOIN u USING (k) |> CROSS JOIN (TABLE w |> LIMIT 3) y": ({"t", "u", "w"}, set()),
    "WITH c AS (SELECT * FROM t) FROM c |> MINUS TABLE c |> WHERE EXISTS (FROM u |> WHERE k = 1)": ({"t", "u"}, set()),
    "FROM t |> SELECT first(v) OVER w AS f WINDOW w AS (ORDER BY upper(k))": ({"t"}, {"first", "upper"}),
    "FROM t |> PIVOT (sum(v) FOR k IN (1, 2)) |> UNPIVOT (v FOR n IN (a, b))": ({"t"}, {"sum"}),
    "VALUES (f(1)) AS v(k) |> EXCEPT TABLE t": ({"t"}, {"f"}),
    "SELECT (FROM t |> AGGREGATE max(k)) AS m FROM u": ({"t", "u"}, {"max"}),
}


@pytest.mark.parametrize("sql", READ)
def test_relations_and_functions(sql: str) -> None:
    relations, functions = READ[sql]
    query = parsed(sql)
    assert query.uses_pipes
    assert {relation.key for relation in query.relations} == relations
    assert query.called == functions


@pytest.mark.parametrize("sql", ["FROM t |>", "FROM t |> NONSENSE x", "FROM t |> |> LIMIT 1"])
def test_what_is_no_operator(sql: str) -> None:
    with pytest.raises(NotParsed, match="cannot be parsed"):
        _ = parsed(sql).tree
