"""dbt as its users know it, with differential models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.dbt.project import Project, rows, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
version: 2
sources:
  - name: raw
    schema: raw
    tables:
      - name: events
        columns: [{name: id, data_type: bigint}, {name: k, data_type: int}, {name: v, data_type: bigint}]
        config: {meta: {differential: {envelope: upsert, key: id, path: data/events, format: json}}}
models:
  - name: totals
    description: Totals by k.
    columns: [{name: k, description: the key, data_tests: [unique]}]
unit_tests:
  - name: adds_up
    model: totals
    given: [{input: "source('raw', 'events')", rows: [{id: 1, k: 1, v: 2}, {id: 2, k: 1, v: 3}]}]
    expect: {rows: [{k: 1, n: 2, s: 5}]}
"""


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    """One upsert source, a seed, and a chain of models."""
    project = Project(tmp_path)
    project.write("models/schema.yml", SOURCES)
    project.write(
        "models/totals.sql", "select k, count(*) as n, sum(v) as s from {{ source('raw', 'events') }} group by k"
    )
    project.write(
        "models/named.sql", "select t.*, n.name from {{ ref('totals') }} t left join {{ ref('names') }} n on n.k = t.k"
    )
    project.write("seeds/names.csv", "k,name\n1,one\n2,two\n")
    project.records("data/events/1.json", [{"id": i, "k": i % 3, "v": i} for i in range(9)])
    project.dbt("seed")
    return project


def test_build_runs_tests_unit_tests_and_models(project: Project, spark: SparkSession) -> None:
    assert strategies(project.dbt("run")) == {"totals": "initial", "named": "initial"}
    assert strategies(project.dbt("build")) == {"totals": "skip", "named": "skip"}
    assert rows(spark, project, "named") == [(0, 3, 9, None), (1, 3, 12, "one"), (2, 3, 15, "two")]
    project.records("data/events/2.json", [{"id": 1, "k": 2, "v": 100}, {"id": 20, "k": 5, "v": 1}])
    results = project.dbt("run")
    assert strategies(results) == {"totals": "delta", "named": "delta"}
    assert re.fullmatch(r"\+3 -2 at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? in \d+\.\d+s", results["totals"].message)
    assert rows(spark, project, "named") == [(0, 3, 9, None), (1, 2, 11, "one"), (2, 4, 115, "two"), (5, 1, 1, None)]
    changes = spark.table(f"{project.schema}.totals__changes")
    assert changes.columns == ["k", "n", "s", "dd_time", "dd_diff"] and changes.count() == 8
    assert strategies(project.dbt("run")) == {"totals": "skip", "named": "skip"}


UNIT = """
unit_tests:
  - name: names
    model: named
    given:
      - {input: ref('totals'), rows: [{k: 1, n: 2, s: 5}]}
      - {input: ref('names'), rows: [{k: 1, name: one}]}
    expect: {rows: [{k: 1, n: 2, s: 5, name: one}]}
"""


def test_commands_that_build_nothing(project: Project, spark: SparkSession) -> None:
    project.write("models/unit.yml", UNIT)
    project.dbt("compile")
    compiled = {result.node.name: result.node.compiled_code for result in project.last.result.results}
    assert f"from {project.schema}.totals t" in compiled["named"].replace("`", "")
    project.dbt("list", "--select", "+named", "--resource-type", "model")
    assert project.last.result == ["p.named", "p.totals"]
    assert not spark.catalog.tableExists(f"{project.schema}.named")
    assert "totals" in str(project.dbt("test", "--select", "names", fails=True)), "an input has not been run yet"
    project.dbt("run")
    results = project.dbt("test")
    assert {name: str(result.status) for name, result in results.items()} == {
        "names": "pass",
        "adds_up": "pass",
        "unique_totals_k": "pass",
    }
    project.records("data/events/2.json", [{"id": 50, "k": None, "v": 1}, {"id": 51, "k": 7, "v": 1}])
    assert strategies(project.dbt("run", "--select", "totals")) == {"totals": "delta"}
    assert str(project.dbt("test", "--select", "totals")["unique_totals_k"].status) == "pass"


def test_seed_changes_reach_models(project: Project, spark: SparkSession) -> None:
    project.dbt("run")
    project.write("seeds/names.csv", "k,name\n1,uno\n2,two\n0,zero\n")
    project.dbt("seed")
    results = project.dbt("run")
    assert strategies(results) == {"totals": "skip", "named": "delta"}
    assert [row[3] for row in rows(spark, project, "named")] == ["zero", "uno", "two"]


def test_selection_holds_back_consistently(project: Project) -> None:
    project.dbt("run")
    project.records("data/events/2.json", [{"id": 30, "k": 1, "v": 1}])
    results = project.dbt("run", "--select", "named")
    assert results["named"].adapter_response["held_back_by"].endswith("totals")
    assert "held back by" in results["named"].message


def test_empty_and_sample_leave_state_alone(project: Project, spark: SparkSession) -> None:
    project.dbt("run")
    before = rows(spark, project, "totals")
    project.records("data/events/2.json", [{"id": 30, "k": 1, "v": 1}])
    for option in ("--empty", "--sample=1 day"):
        project.dbt("run", option)
        assert rows(spark, project, "totals") == before
        project.write("models/wrong.sql", "select no_such from {{ ref('totals') }}")
        assert "no_such" in project.dbt("run", option, "--select", "wrong", fails=True)["wrong"]
        (project.folder / "models" / "wrong.sql").unlink()
    project.dbt("run")
    assert rows(spark, project, "totals") != before


def test_docs_hooks_contract_and_full_refresh(project: Project, spark: SparkSession) -> None:
    project.write(
        "models/kept.sql",
        "{{ config(post_hook='create table if not exists {{ this.schema }}.hooked as select 1 as one', tags=['t'],"
        " contract={'enforced': true}, persist_docs={'relation': true}) }} select k, n from {{ ref('totals') }}",
    )
    project.write(
        "models/kept.yml",
        "models: [{name: kept, description: Kept., columns: [{name: k, data_type: int}, {name: n, data_type: bigint}]}]",
    )
    project.dbt("run")
    assert spark.table(f"{project.schema}.hooked").count() == 1
    project.dbt("docs", "generate")
    assert (project.folder / "target" / "catalog.json").exists()
    results = project.dbt("run", "--full-refresh")
    assert set(strategies(results).values()) == {"rebuild"}
    assert results["kept"].adapter_response["rows_added"] == 0


def test_macros_read_history(project: Project, spark: SparkSession) -> None:
    project.dbt("run", "--vars", "{dd_time: '2020-01-01'}")
    project.records("data/events/2.json", [{"id": 0, "k": 1, "v": 50}])
    project.dbt("run", "--vars", "{dd_time: '2020-01-02'}")
    project.write(
        "models/was.sql",
        "{{ config(materialized='table') }} select * from {{ dd_as_of(ref('totals'), '2020-01-01') }}",
    )
    project.write(
        "models/diffs.sql",
        "{{ config(materialized='table') }} select * from {{ dd_changes(ref('totals'), '2020-01-01', '2020-01-02') }}",
    )
    project.dbt("run", "--select", "was", "diffs", "--vars", "{dd_time: '2020-01-02'}")
    assert rows(spark, project, "was") == [(0, 3, 9), (1, 3, 12), (2, 3, 15)]
    assert sorted(r["dd_diff"] for r in spark.table(f"{project.schema}.diffs").collect()) == [-1, -1, 1, 1]
    project.write("models/was.sql", "select * from {{ dd_as_of(ref('totals'), '2019-01-01') }}")
    assert "cannot be read as of 2019-01-01 00:00:00" in project.dbt("run", "--select", "was", fails=True)["was"]


ERRORS = {
    "unknown config": ("{{ config(retain_histroy='1 day') }} select 1 as x", "Did you mean retain_history"),
    "unique key": ("{{ config(unique_key='k') }} select 1 as x", "unique_key means nothing"),
    "rand": ("select rand() as r from {{ ref('totals') }}", r"rand\(\) gives another answer"),
    "fallback error": (
        "{{ config(fallback='error') }} with recursive r(i) as (select 1 union all"
        " select x.i + y.i from r x join r y on x.i = y.i where x.i < 3)"
        " select r.i, t.n from r join {{ ref('totals') }} t on t.k = r.i",
        "would be recomputed",
    ),
    "reserved column": ("select k as dd_time from {{ ref('totals') }}", "reserved"),
    "bad strategy": ("{{ config(strategy='fast') }} select 1 as x", "strategy is 'fast'"),
    "bad duration": ("{{ config(retain_history='soon') }} select 1 as x", "not a duration"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_model_and_what_to_do(project: Project, case: str) -> None:
    sql, message = ERRORS[case]
    project.write("models/wrong.sql", sql)
    messages = project.dbt("run", fails=True)
    assert re.search(message, messages["wrong"]), messages["wrong"]
    project.write("models/wrong.sql", "select k from {{ ref('totals') }}")
    project.dbt("run")


def test_other_materializations_beside(project: Project, spark: SparkSession) -> None:
    project.write("models/a_view.sql", "{{ config(materialized='view') }} select k from {{ ref('totals') }}")
    project.write(
        "models/an_ephemeral.sql", "{{ config(materialized='ephemeral') }} select k, n from {{ ref('totals') }}"
    )
    project.write("models/a_table.sql", "{{ config(materialized='table') }} select * from {{ ref('an_ephemeral') }}")
    project.write(
        "models/over.sql", "select v.k, e.n from {{ ref('a_view') }} v join {{ ref('an_ephemeral') }} e on e.k = v.k"
    )
    project.dbt("run")
    project.records("data/events/2.json", [{"id": 50, "k": 9, "v": 1}])
    project.dbt("run")
    assert rows(spark, project, "over") == rows(spark, project, "a_table")
