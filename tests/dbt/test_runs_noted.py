"""``dbt run`` notes what its models did, unless the profile says not to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dbt.adapters.differential.credentials import DifferentialCredentials
from dbt_common.exceptions import DbtRuntimeError

import dbt_incremental_dd
from dbt_incremental_dd.cli import main
from tests.dbt.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
version: 2
sources:
  - name: shop
    tables:
      - name: orders
        columns: [{name: id, data_type: bigint}, {name: amount, data_type: bigint}]
        config: {meta: {differential: {envelope: append, path: orders, format: json}}}
"""
TOTAL = "select id % 2 as k, sum(amount) as s from {{ source('shop', 'orders') }} group by 1"


def runs(project: Project) -> list[dict[str, Any]]:
    database = dbt_incremental_dd.open(str(project.folder / ".dbt_incremental_dd"))
    if "dd_runs" not in {place.name for place in database.storage.collections(own=True)}:
        return []
    return sorted(database["dd_runs"].as_of().to_pylist(), key=lambda row: row["began"])


def test_each_run_that_changes_something(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project(tmp_path)
    project.write("models/sources.yml", SOURCES)
    project.write("models/total.sql", TOTAL)
    project.records("orders/1.json", [{"id": n, "amount": n} for n in range(9)])
    project.dbt("run")
    project.dbt("run")
    project.records("orders/2.json", [{"id": 10, "amount": 5}])
    project.write("models/wrong.sql", "select no_such from {{ source('shop', 'orders') }}")
    project.dbt("run", fails=True)
    first, *others = runs(project)
    assert (first["model"], first["strategy"]) == (f"{project.schema}.total", "initial")
    assert {row["strategy"] for row in others} == {"delta", "failed"} and len(others) == 2
    assert len({row["invocation"] for row in others} | {first["invocation"]}) == 2

    capsys.readouterr()
    where = ["--state-root", str(project.folder / ".dbt_incremental_dd")]
    assert main(["explain", "total", "--analyze", *where]) == 0
    told = capsys.readouterr().out
    assert f"{project.schema}.total: delta, " in told and "Get shop.orders" in told
    assert main(["status", *where]) == 0
    assert "dd_runs" not in capsys.readouterr().out
    assert main(["query", "dd_runs", "--format", "json", *where]) == 0
    assert capsys.readouterr().out.count('"strategy"') == 3


def test_it_is_switched_off(spark: SparkSession, tmp_path: Path) -> None:
    project = Project(tmp_path, keep_runs=False)
    project.write("models/one.sql", "select 1 as x")
    project.dbt("run")
    assert runs(project) == []


@pytest.mark.parametrize(("given", "kept"), [(None, 30 * 86_400_000), (False, 0), ("false", 0), ("2 hours", 7_200_000)])
def test_for_how_long(given: object, kept: int) -> None:
    setting = {} if given is None else {"keep_runs": given}
    assert DifferentialCredentials.from_dict({"schema": "s", **setting}).runs_kept == kept


def test_neither_a_duration_nor_false() -> None:
    with pytest.raises(DbtRuntimeError, match=r"keep_runs is 'long'\n.*keep_runs: false"):
        DifferentialCredentials.from_dict({"schema": "s", "keep_runs": "long"})
