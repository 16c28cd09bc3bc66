"""The condition on the rows that a subscriber may read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.errors import ConditionError
from dbt_incremental_dd.subscribe.condition import Condition


def test_a_condition_keeps_the_order_and_the_types_of_updates() -> None:
    many = 300_000
    times = pa.array(range(many), pa.int64())
    parts = [times, pa.array([i % 7 for i in range(many)], pa.int32()), times, pa.array([1] * many, pa.int64())]
    table = pa.table(parts, names=["k", "v", "dd_time", "dd_diff"])
    updates = pa.concat_tables([table.slice(0, 1000), table.slice(1000)])
    found = Condition("x", "v = 3 OR NULL").apply(updates)
    assert found.schema == table.schema
    assert found["dd_time"].to_pylist() == [t for t in range(many) if t % 7 == 3]
    with pytest.raises(ConditionError, match="x cannot be read"):
        Condition("x", "dd_time = 1").apply(updates)
