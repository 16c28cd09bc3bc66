"""What relations on the driver claim of their rows is so: an operator that relies on a claim that is not may be wrong
only where its input is of a certain kind, which no test may have met."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.trace.arrow import is_plain

_LOOKED_AT = 5_000
"""Rows."""


@pytest.fixture(autouse=True)
def claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """For every test of the folders whose ``conftest`` imports it."""
    made = Relation.__init__

    def init(self: Relation, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **named)
        if isinstance(self.rows, Table) and 0 < self.rows.arrow.num_rows <= _LOOKED_AT:
            _require(self, self.rows)

    monkeypatch.setattr(Relation, "__init__", init)


def _require(relation: Relation, rows: Table) -> None:
    if relation.positive:
        least = pc.min(rows.arrow[DIFF]).as_py()
        assert least is None or least >= 1, f"it claims to be positive, and has {least}"
    data = [column for column in rows.schema if column.name != DIFF]
    if relation.consolidated and data and is_plain(rows.schema):
        values = zip(*(rows.arrow[column.name].to_pylist() for column in data), strict=True)
        assert len(set(values)) == rows.num_rows, "it claims to be consolidated, and has a row twice"
