"""The types of a seed's columns: dbt-spark's macro asks for a column's type with each value of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import agate
import pytest
from dbt.adapters.differential import DifferentialAdapter
from dbt.adapters.spark import SparkAdapter


def test_a_column_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    by_dbt = SparkAdapter.convert_number_type.__func__  # type: ignore[attr-defined]

    def convert(cls: Any, table: agate.Table, column: int) -> str:
        looked.append(column)
        return str(by_dbt(cls, table, column))

    monkeypatch.setattr(SparkAdapter, "convert_number_type", classmethod(convert))
    names, types = ["a", "b", "c"], [agate.Number(), agate.Text(), agate.Number()]
    one = agate.Table([[Decimal(1), "x", Decimal("1.5")]], names, types)
    other = agate.Table([[Decimal("2.5"), "y", Decimal(3)]], names, types)
    for _ in range(3):
        assert [DifferentialAdapter.convert_agate_type(one, place) for place in range(3)] == [
            "bigint",
            "string",
            "double",
        ]
        assert [DifferentialAdapter.convert_agate_type(other, place) for place in range(3)] == [
            "double",
            "string",
            "bigint",
        ]
    assert sorted(looked) == [0, 0, 2, 2]
