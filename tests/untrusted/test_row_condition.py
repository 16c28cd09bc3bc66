"""Conditions on rows that cannot fail, and which of them stay as they are."""

from __future__ import annotations

import duckdb
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BYTE, DATE, LONG, STRING
from dbt_incremental_dd.untrusted.row_condition import safe_condition

SCHEMA = Schema((Column("k", LONG), Column("b", BYTE), Column("v", STRING), Column("d", DATE)))
ROWS = "FROM (VALUES (1::BIGINT, 1::TINYINT, 'x', date '2024-05-01'), (99999999999, -1, '7', NULL), (NULL, NULL, NULL, NULL))"
PLAIN = [
    "k = 1",
    "K > 1 and v = 'x'",
    "1 < k or not v in ('x', 'y') -- of all",
    "b = 1000",
    "d >= '2024-01-01'",
    '"v" is null',
    "k in (1, 2, 99999999999999999999)",
    "true",
    "v is not null and (k = 1 or false)",
]
GUARDED = [
    "v = 1",
    "v in (1, 2)",
    "v::int = 7",
    "k * 9223372036854775807 > 0",
    "k::tinyint = 1",
    "b = k::tinyint",
    "k = v",
    "d = v",
    "k = 1.5",
    "b + 127 > 0",
    "v = 'x' and k::tinyint = 1",
    "k in (v, 1)",
    "case when v = '7' then v else 'z' end::int = 7",
    "k between 1 and 2",
    "nosuch = 1",
]


@pytest.mark.parametrize("sql", [*PLAIN, *GUARDED])
def test_no_row_makes_it_fail(sql: str) -> None:
    safe = safe_condition(sql, SCHEMA)
    assert safe.startswith("TRY") == (sql in GUARDED)
    if sql == "nosuch = 1":
        return
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE held AS {ROWS} AS t(k, b, v, d)")
        found = connection.execute(f"SELECT {safe} FROM held").fetchall()
        # Where it does not fail, it is what it was.
        for number, (value,) in enumerate(found):
            try:
                (expected,) = connection.execute(f"SELECT (\n{sql}\n) FROM held LIMIT 1 OFFSET {number}").fetchall()
            except duckdb.Error:
                continue
            assert (value,) == expected
