"""The table in docs/sql.md says what the plans are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.differential.explain import explain
from dbt_incremental_dd.differential.state import stores
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.logical.graph import each_once
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compile import compile_model
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    "t": "k INT, v BIGINT, s STRING, d DECIMAL(12,2), f DOUBLE, ts TIMESTAMP, arr ARRAY<INT>",
    "u": "k INT, w STRING",
}


def documented() -> list[tuple[str, str, list[str], list[str]]]:
    """Construct, example, operators and states of each line of the table."""
    text = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    return [(c[0].strip(), c[1].strip().strip("`"), _ticked(c[2]), _ticked(c[3])) for c in lines]


def _ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("line", documented(), ids=lambda line: line[0])
def test_the_plan_is_as_documented(spark: SparkSession, line: tuple[str, str, list[str], list[str]]) -> None:
    _, sql, operators, states = line
    schemas = {name: schema_of(spark.createDataFrame([], ddl).schema) for name, ddl in TABLES.items()}
    inputs = {relation.key: Input(relation.key, schemas[relation.key]) for relation in parsed(sql).relations}
    plan = compile_model(LazySession.of(spark), "m", parsed(sql), inputs).plan
    shown = explain(plan)
    for operator in operators:
        assert operator in shown, shown
    assert sorted(state.name for node in each_once(plan.root) for state in stores(node)) == sorted(states), shown
    assert bool(plan.fallbacks) is ("Recompute all" in operators), shown
