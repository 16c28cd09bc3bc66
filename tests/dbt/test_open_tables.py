"""``output: delta`` in a project, read by somebody who knows nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import dbt_incremental_dd
from tests.dbt.project import Project, strategies
from tests.open_table.readers import by_delta_rs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCES = """
sources:
  - name: shop
    schema: shop
    tables:
      - name: orders
        columns: [{name: id, data_type: bigint}, {name: who, data_type: string}, {name: n, data_type: bigint}]
        config: {meta: {differential: {envelope: upsert, key: id, path: data, format: json}}}
"""
_SUMS = "select who, sum(n) as n from {{ source('shop', 'orders') }} group by who"


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("models/sources.yml", _SOURCES)
    made.write("models/sums.sql", "{{ config(output='delta') }}" + _SUMS)
    made.records("data/1.json", [{"id": 1, "who": "ann", "n": 1}, {"id": 2, "who": "bob", "n": 2}])
    return made


def _uri(project: Project, name: str = "sums") -> str | None:
    database = dbt_incremental_dd.open(str(project.folder / ".dbt_incremental_dd"))
    return database[f"{project.schema}.{name}"].table_uri


def test_a_table_for_everybody(project: Project) -> None:
    project.dbt("run")
    uri = _uri(project)
    assert uri is not None
    assert by_delta_rs(uri, ("who", "n")) == {("ann", 1): 1, ("bob", 2): 1}
    project.records("data/2.json", [{"id": 2, "who": "ann", "n": 5}])
    assert strategies(project.dbt("run")) == {"sums": "delta"}
    assert by_delta_rs(uri, ("who", "n")) == {("ann", 6): 1}


def test_a_config_of_all_models_and_a_history(project: Project) -> None:
    project.write("models/sums.sql", _SUMS)
    project.write("models/versions.sql", "select * from {{ dd_history(ref('sums'), unique_key='who') }}")
    text = (project.folder / "dbt_project.yml").read_text().replace("+materialized", "+output: delta\n  +materialized")
    project.write("dbt_project.yml", text)
    project.dbt("run")
    project.records("data/2.json", [{"id": 2, "who": "bob", "n": 5}])
    project.dbt("run")
    uri = _uri(project, "versions")
    assert uri is not None
    assert by_delta_rs(uri, ("who", "n", "is_current")) == {
        ("ann", 1, True): 1,
        ("bob", 2, False): 1,
        ("bob", 5, True): 1,
    }


def test_a_model_that_is_dropped_or_has_none_any_more(project: Project) -> None:
    project.dbt("run")
    uri = _uri(project)
    assert uri is not None
    project.write("models/sums.sql", _SUMS)
    project.dbt("run")
    assert any(f"the table at {uri} goes" in line for line in project.told)
    assert not Path(uri).exists()
    assert _uri(project) is None


def test_an_unknown_format(project: Project) -> None:
    project.write("models/sums.sql", "{{ config(output='csv') }}" + _SUMS)
    assert "output is 'csv'" in project.dbt("run", fails=True)["sums"]
