"""What a plan says of adopting its rows: by which columns they can be sampled, and which states may wait. No JVM."""

from __future__ import annotations

import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import INTEGER
from dbt_incremental_dd.differential.lower import DifferentialPlan
from dbt_incremental_dd.differential.origins import origins
from dbt_incremental_dd.differential.unbuilt import buildable_later
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.runtime.compile import compiled_on_driver
from tests.observe.no_session import no_session

INPUTS = {name: Input(name, Schema(tuple(Column(c, INTEGER) for c in "xyzv"))) for name in "abc"}
SAMPLED = {
    "select x, y + z as s from a where v > 3": "x=a.x",
    "select x as k, sum(y) as s from a group by x": "k=a.x",
    "select count(*) as n, max(x) as x from a": "",
    "select a.x, b.y, c.z from a join b on a.x = b.x left join c on c.x = b.y": "x=a.x y=b.y",
    "select x from a union all select y from b": "x=a.x,b.y",
    "select x, 1 as y from a union all select y, x from b": "x=a.x,b.y",
    "select distinct s from (select x, sum(y) as s from a group by x)": "",
    "select x, rank() over (partition by y order by z) as r, y from a": "y=a.y",
    "select x, y from (select *, row_number() over (partition by y order by z, x) as p from a) where p = 1": "y=a.y",
    "select x, y from a order by x limit 3": "",
    "select x, y from a where exists (select 1 from b where b.x = a.y)": "x=a.x y=a.y",
    "select coalesce(a.x, b.x) as k, a.y from a full join b on a.x = b.x": "",
}
WAITING = {
    "select x from a where y > 1": (),
    "select x, sum(y) as s, min(z) as m from a group by x": ("reduce1.sums", "reduce1.values"),
    "select x, avg(y) as mean from a group by x": None,
    "select distinct n from (select x, count(*) as n from a group by x)": ("reduce1.sums", "reduce2.sums"),
    "select x, rank() over (partition by y order by z) as r, y, z from a": (),
    "select x, r + 1 as r from (select x, rank() over (partition by y order by z) as r from a)": None,
    "select x, y from a order by x limit 3": None,
}


def plan_of(sql: str) -> DifferentialPlan:
    """Compiled without a session."""
    found = compiled_on_driver(no_session(), "m", parsed(sql), INPUTS)
    assert found is not None, sql
    return found[0]


@pytest.mark.parametrize("sql", SAMPLED)
def test_columns_whose_values_can_be_looked_up_alone(sql: str) -> None:
    found = {
        name: ",".join(sorted(f"{one.collection}.{one.column}" for one in of))
        for name, of in origins(plan_of(sql)).items()
    }
    assert " ".join(f"{name}={of}" for name, of in found.items()) == SAMPLED[sql]


@pytest.mark.parametrize("sql", WAITING)
def test_states_that_may_wait(sql: str) -> None:
    found, wanted = buildable_later(plan_of(sql)), WAITING[sql]
    assert (None if found is None else set(found)) == (None if wanted is None else set(wanted))
