"""A project's tables become differential models without being computed again, where it asks for that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from dbt_incremental_dd.cli import main
from tests.dbt.project import Project, rows, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOTALS = "select k, count(*) as n, sum(s) as s from {{ ref('base') }} group by k"
BEST = "select max(s) as s from {{ ref('totals') }}"
NEW = "select distinct k from {{ ref('base') }}"
EXPECTED = [(0, 2, 10), (1, 1, 12), (2, 1, 15)]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two tables over a seed, made by dbt-spark's materialization."""
    project = Project(tmp_path)
    project.write("seeds/base.csv", "k,s\n0,9\n0,1\n1,12\n2,15\n")
    project.write("models/totals.sql", TOTALS)
    project.write("models/best.sql", BEST)
    _set(project, materialized="table")
    project.dbt("build")
    return project


def _set(project: Project, **configs: object) -> None:
    """The configs of all models."""
    path = project.folder / "dbt_project.yml"
    settings = yaml.safe_load(path.read_text())
    settings["models"] = {f"+{name}": value for name, value in configs.items()}
    path.write_text(yaml.safe_dump(settings))


def test_a_folder_of_tables_is_adopted(
    spark: SparkSession, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    _set(project, materialized="differential", adopt=True)
    project.write("models/new.sql", NEW)
    results = project.dbt("run")
    assert strategies(results) == {"totals": "adopt", "best": "adopt", "new": "initial"}
    own = f"{project.schema}.totals"
    assert f"adopted from {own}, verified by a sample: the rows of 3 values of k" in results["totals"].message
    assert "verified whole, for no column's values can be looked up alone" in results["best"].message
    assert rows(spark, project, "totals") == EXPECTED
    folders = ["--project-dir", str(project.folder), "--profiles-dir", str(project.folder)]
    assert main(["status", *folders]) == 0
    assert f"adopted from {own}, verified by a sample" in capsys.readouterr().out
    assert strategies(project.dbt("run")) == {"totals": "skip", "best": "skip", "new": "skip"}
    project.write("seeds/base.csv", "k,s\n0,9\n1,12\n2,15\n3,99\n")
    assert set(strategies(project.dbt("build")).values()) == {"delta"}
    assert rows(spark, project, "totals") == [(0, 1, 9), (1, 1, 12), (2, 1, 15), (3, 1, 99)]
    assert rows(spark, project, "best") == [(99,)]
    assert main(["verify", *folders]) == 0


def test_nothing_is_adopted_unasked_or_behind_its_inputs(spark: SparkSession, project: Project) -> None:
    project.write("seeds/base.csv", "k,s\n0,9\n0,1\n1,12\n2,15\n2,1\n")
    project.dbt("seed")
    _set(project, materialized="differential", adopt=True)
    told = project.dbt("run", "--select", "totals", fails=True)["totals"]
    assert "its rows are not the query's" in told
    assert "missing: (2, 2, 16); unexpected: (2, 1, 15)" in told
    assert spark.catalog.getTable(f"{project.schema}.totals").tableType == "MANAGED"
    assert rows(spark, project, "totals") == EXPECTED
    _set(project, materialized="differential")
    assert strategies(project.dbt("run", "--select", "totals")) == {"totals": "initial"}
    assert rows(spark, project, "totals") == [(0, 2, 10), (1, 1, 12), (2, 2, 16)]
