"""Set operations that compile without Spark: a cold run opens no session for them."""

from __future__ import annotations

import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import INTEGER, STRING
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.runtime.compile import compiled_on_driver
from tests.observe.no_session import no_session

T = Input("t", Schema((Column("k", INTEGER), Column("v", INTEGER), Column("s", STRING))))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'new' AS kind, k FROM t UNION ALL SELECT 'old', v FROM t",
        "SELECT k, v + 1 AS v FROM t UNION SELECT k, v * 2 FROM t UNION SELECT v, k FROM t",
        "SELECT k + 1 AS k FROM t EXCEPT SELECT v - 1 FROM t",
        "SELECT upper(s) AS s FROM t INTERSECT ALL SELECT lower(s) FROM t",
        "SELECT k, count(*) AS n FROM t GROUP BY k UNION ALL SELECT v, count(s) FROM t GROUP BY v",
        "WITH a AS (SELECT k * 2 AS k FROM t), b AS (SELECT v AS k FROM t) SELECT * FROM a UNION ALL SELECT * FROM b",
    ],
)
def test_computed_columns_of_set_operations(sql: str) -> None:
    made = compiled_on_driver(no_session(), "m", parsed(sql), {"t": T})
    assert made is not None
    assert not made[0].fallbacks
