"""A model changes its materialization, to differential and back: nothing is lost on the way, nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.cli import main
from dbt_incremental_dd.core import failpoints
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.catalog import Catalog
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.swap import table_aside
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.project import Project, rows, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
sources:
  - name: raw
    schema: {schema}raw
    tables:
      - name: events
        columns: [{{name: k, data_type: int}}, {{name: v, data_type: bigint}}]
        config: {{meta: {{differential: {{envelope: append, path: data/events, format: json}}}}}}
"""
TOTALS = "select k, sum(v) as s from {{ source('raw', 'events') }} group by k"
EXPECTED = [(0, 9), (1, 12), (2, 15)]
AS = "{{{{ config(materialized='{}') }}}} "
OVERWRITTEN = "{{ config(materialized='incremental', incremental_strategy='insert_overwrite') }} "


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    """One model over seeds that dbt-spark's materializations and ours both read."""
    project = Project(tmp_path)
    project.write("models/sources.yml", SOURCES.format(schema=project.schema))
    project.write("seeds/base.csv", "k,s\n0,9\n1,12\n2,15\n")
    project.write("models/totals.sql", AS.format("table") + "select k, s from {{ ref('base') }}")
    project.records("data/events/1.json", [{"k": i % 3, "v": i} for i in range(9)])
    project.dbt("seed")
    return project


def relations(spark: SparkSession, project: Project) -> set[str]:
    """All that the schema has, views and tables."""
    found = spark.sql(f"SHOW TABLES IN {project.schema}").collect()
    return {row["tableName"] for row in found if not row["isTemporary"]}


def _as(materialized: str) -> str:
    return OVERWRITTEN if materialized == "incremental" else AS.format(materialized)


@pytest.mark.parametrize(
    "sql",
    [
        "select k, rand() as s from {{ ref('base') }}",
        "select no_such from {{ ref('base') }}",
        "select k, raise_error('no') as s from {{ ref('base') }}",
        "{{ config(fallback='nonsense') }} select k, s from {{ ref('base') }}",
    ],
    ids=["refused", "wrong", "fails", "settings"],
)
def test_a_table_stays_where_the_switch_fails(spark: SparkSession, project: Project, sql: str) -> None:
    project.dbt("run")
    project.write("models/totals.sql", AS.format("differential") + sql)
    project.dbt("run", fails=True)
    assert rows(spark, project, "totals") == EXPECTED
    assert relations(spark, project) == {"base", "totals"}


@pytest.mark.parametrize("former", ["table", "view", "incremental"])
def test_there_and_back(spark: SparkSession, project: Project, former: str) -> None:
    project.write("models/totals.sql", _as(former) + "select k, s from {{ ref('base') }}")
    project.dbt("run")
    for how in ("differential", former, "differential", former):
        project.write("models/totals.sql", _as(how) + "select k, s from {{ ref('base') }}")
        project.dbt("run")
        assert rows(spark, project, "totals") == EXPECTED
        changes = {"totals__changes"} if how == "differential" else set()
        assert relations(spark, project) == {"base", "totals"} | changes
        project.dbt("run")
        assert rows(spark, project, "totals") == EXPECTED


def test_a_model_that_comes_back_goes_on_from_what_is_stored(spark: SparkSession, project: Project) -> None:
    project.write("models/totals.sql", AS.format("differential") + TOTALS)
    project.dbt("run")
    project.write("models/totals.sql", AS.format("table") + "select 1 as one")
    project.dbt("run")
    project.records("data/events/2.json", [{"k": 2, "v": 1}])
    project.write("models/totals.sql", AS.format("differential") + TOTALS)
    assert strategies(project.dbt("run")) == {"totals": "delta"}
    assert rows(spark, project, "totals") == [(0, 9), (1, 12), (2, 16)]


def test_a_differential_model_stays_where_the_way_back_fails(spark: SparkSession, project: Project) -> None:
    project.write("models/totals.sql", AS.format("differential") + TOTALS)
    project.dbt("run")
    project.write("models/totals.sql", AS.format("table") + "select no_such from {{ ref('base') }}")
    project.dbt("run", fails=True)
    assert rows(spark, project, "totals") == EXPECTED
    assert relations(spark, project) == {"base", "totals", "totals__changes"}


class Ended(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("point", ["model: committed", "table: aside", "view: before", "table: replaced"])
def test_a_swap_that_is_ended_is_finished_by_the_next_run(
    spark: SparkSession, project: Project, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    project.dbt("run")
    relation = f"{project.schema}.totals"
    request = ModelRequest(relation, relation, f"select k, s from {project.schema}.base", ModelConfig())

    def run() -> None:
        state = Storage(str(project.folder / ".dbt_incremental_dd"))
        Run(LazySession.of(spark), state, "swap", None, lambda line: None).model(request)

    def end(name: str) -> None:
        if name == point:
            raise Ended

    with monkeypatch.context() as patched:
        patched.setattr(failpoints, "_watcher", end)
        with pytest.raises(Ended):
            run()
    kept = "totals" if "totals" in relations(spark, project) else "totals__dd_former"
    assert rows(spark, project, kept) == EXPECTED
    run()
    assert rows(spark, project, "totals") == EXPECTED
    assert relations(spark, project) == {"base", "totals", "totals__changes"}


def test_a_table_gets_its_name_back_where_the_view_cannot_be_made(spark: SparkSession, project: Project) -> None:
    project.dbt("run")
    relation = f"{project.schema}.totals"
    with pytest.raises(ValueError, match="no view"), table_aside(Catalog(LazySession.of(spark)), relation):
        assert relations(spark, project) == {"base", "totals__dd_former"}
        raise ValueError("no view")
    assert rows(spark, project, "totals") == EXPECTED
    assert relations(spark, project) == {"base", "totals"}


def test_what_no_model_owns_is_reported_and_removed(
    spark: SparkSession, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("models/totals.sql", AS.format("differential") + TOTALS)
    project.write("models/kept.sql", AS.format("differential") + "select k, s from {{ ref('base') }}")
    project.dbt("run")
    command = ["vacuum", "--project-dir", str(project.folder), "--profiles-dir", str(project.folder)]
    assert main(command) == 0
    assert "orphan" not in capsys.readouterr().out
    project.write("models/totals.sql", AS.format("table") + "select 1 as one")
    project.dbt("run")
    assert main(["compact", *command[1:]]) == 0
    capsys.readouterr()
    assert main(command) == 0
    lines = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if "an orphan" in line]
    assert sorted(lines) == [f"{project.schema}.totals", f"{project.schema}raw.events"]
    assert main([*command, "--orphans"]) == 0
    left = {place.name for place in Storage(str(project.folder / ".dbt_incremental_dd")).collections()}
    assert left == {f"{project.schema}.kept", f"{project.schema}.base"}
    assert rows(spark, project, "totals") == [(1,)]
    assert rows(spark, project, "kept") == EXPECTED
