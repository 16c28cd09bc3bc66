"""dbt's own features over differential models: retry, defer, versions, threads, partial parsing, schema changes."""

from __future__ import annotations

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
    schema: {schema}raw
    tables:
      - name: events
        columns: [{{name: k, data_type: int}}, {{name: v, data_type: bigint}}]
        config: {{meta: {{differential: {{envelope: append, path: data/events, format: json}}}}}}
"""


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    """One appended source and two models."""
    project = Project(tmp_path)
    project.write("models/sources.yml", SOURCES.format(schema=project.schema))
    project.write("models/totals.sql", "select k, sum(v) as s from {{ source('raw', 'events') }} group by k")
    project.write("models/top.sql", "select max(s) as s from {{ ref('totals') }}")
    project.records("data/events/1.json", [{"k": i % 3, "v": i} for i in range(9)])
    return project


def test_retry_goes_on_where_it_failed(project: Project, spark: SparkSession) -> None:
    project.write("models/top.sql", "select max(no_such) as s from {{ ref('totals') }}")
    assert "no_such" in project.dbt("run", fails=True)["top"]
    project.write("models/top.sql", "select max(s) as s from {{ ref('totals') }}")
    assert strategies(project.dbt("retry")) == {"top": "initial"}
    assert rows(spark, project, "top") == [(15,)]


def test_defer_reads_what_another_target_built(project: Project, spark: SparkSession) -> None:
    project.dbt("run")
    (project.folder / "target" / "manifest.json").rename(project.folder / "manifest.json")
    former = project.schema
    profile = (project.folder / "profiles.yml").read_text().replace(f"schema: {former}", f"schema: {former}dev")
    project.write("profiles.yml", profile)
    results = project.dbt("run", "--select", "top", "--defer", "--state", str(project.folder))
    assert strategies(results) == {"top": "initial"}
    project.schema = f"{former}dev"
    assert rows(spark, project, "top") == [(15,)]
    project.records("data/events/2.json", [{"k": 1, "v": 100}])
    project.write("profiles.yml", profile.replace(f"{former}dev", former))
    project.dbt("run", "--select", "totals")
    project.write("profiles.yml", profile)
    results = project.dbt("run", "--select", "top", "--defer", "--state", str(project.folder))
    assert strategies(results) == {"top": "delta"}
    assert rows(spark, project, "top") == [(112,)]


def test_versions_are_models_of_their_own(project: Project, spark: SparkSession) -> None:
    project.write("models/named_v1.sql", "select k, s from {{ ref('totals') }}")
    project.write("models/named_v2.sql", "select k, s, 'new' as note from {{ ref('totals') }}")
    project.write("models/named.yml", "models: [{name: named, latest_version: 2, versions: [{v: 1}, {v: 2}]}]")
    project.write("models/over.sql", "select note, count(*) as n from {{ ref('named') }} group by note")
    project.dbt("run")
    assert rows(spark, project, "over") == [("new", 3)]
    assert len(rows(spark, project, "named_v1")) == 3
    project.records("data/events/2.json", [{"k": 7, "v": 1}])
    assert set(strategies(project.dbt("run")).values()) == {"delta"}
    assert rows(spark, project, "over") == [("new", 4)]


def test_four_threads_take_a_source_in_once(project: Project, spark: SparkSession) -> None:
    for i in range(6):
        project.write(
            f"models/many{i}.sql", f"select k, sum(v) + {i} as s from {{{{ source('raw', 'events') }}}} group by k"
        )
    project.dbt("run", "--threads", "4")
    project.records("data/events/2.json", [{"k": 0, "v": 1000}, {"k": 5, "v": 1}])
    results = project.dbt("run", "--threads", "4")
    assert set(strategies(results).values()) == {"delta"}
    assert len({r.adapter_response["as_of"] for r in results.values()}) == 1
    for i in range(6):
        expected = sorted([(0, 1009 + i), (1, 12 + i), (2, 15 + i), (5, 1 + i)], key=str)
        assert rows(spark, project, f"many{i}") == expected


def test_partial_parsing_sees_changed_models(project: Project, spark: SparkSession) -> None:
    project.dbt("run")
    project.write("models/top.sql", "select min(s) as s from {{ ref('totals') }}")
    assert strategies(project.dbt("run", "--partial-parse")) == {"totals": "skip", "top": "rebuild"}
    assert rows(spark, project, "top") == [(9,)]


def test_on_schema_change(project: Project, spark: SparkSession) -> None:
    config = "{{{{ config(on_schema_change='{0}') }}}} "
    project.write("models/top.sql", config.format("fail") + "select max(s) as s from {{ ref('totals') }}")
    project.dbt("run")
    project.write("models/top.sql", config.format("fail") + "select max(s) as s, 1 as one from {{ ref('totals') }}")
    assert "columns have changed (new: one)" in project.dbt("run", fails=True)["top"]
    assert spark.table(f"{project.schema}.top").columns == ["s"]
    project.write("models/top.sql", config.format("append_new_columns") + "select 1 as one from {{ ref('totals') }}")
    assert "append_new_columns" in project.dbt("run", fails=True)["top"]
    project.write("models/top.sql", config.format("sync_all_columns") + "select 1 as one from {{ ref('totals') }}")
    project.dbt("run")
    assert spark.table(f"{project.schema}.top").columns == ["one"]


def test_two_models_on_one_relation_are_refused(project: Project, spark: SparkSession) -> None:
    project.dbt("run")
    project.write("models/other.sql", "{{ config(alias='top') }} select 1 as x")
    project.dbt("run", fails=True)
    message = str(project.last.exception)
    assert f"{project.schema}.top" in message and "models/other.sql" in message
    assert rows(spark, project, "top") == [(15,)]


def test_a_renamed_model_with_its_former_alias_goes_on(project: Project, spark: SparkSession) -> None:
    project.dbt("run")
    (project.folder / "models/top.sql").unlink()
    project.write("models/other.sql", "{{ config(alias='top') }} select min(s) as s from {{ ref('totals') }}")
    assert strategies(project.dbt("run")) == {"totals": "skip", "other": "rebuild"}
    assert rows(spark, project, "top") == [(9,)]
    assert spark.table(f"{project.schema}.top__changes").count() == 3


def test_unwritable_state_root_is_named(project: Project) -> None:
    (project.folder / "file").write_text("in the way")
    profile = (project.folder / "profiles.yml").read_text()
    project.write("profiles.yml", profile.replace("schema:", f"state_root: {project.folder}/file/state\n      schema:"))
    messages = project.dbt("run", fails=True).values()
    message = " ".join([str(project.last.exception), *messages])  # of the models where a session is open already
    assert "state_root" in message and "file/state cannot be written" in message
    project.write("profiles.yml", profile)
    project.dbt("run")


def test_a_frontier_never_goes_back(project: Project, spark: SparkSession) -> None:
    project.dbt("run", "--vars", "{dd_time: '2020-01-02'}")
    project.records("data/events/2.json", [{"k": 7, "v": 1}])
    results = project.dbt("run", "--vars", "{dd_time: '2020-01-01'}")
    assert set(strategies(results).values()) == {"skip"}
    project.write("models/top.sql", "select min(s) as s from {{ ref('totals') }}")
    results = project.dbt("run", "--vars", "{dd_time: '2020-01-01'}")
    assert strategies(results) == {"totals": "skip", "top": "rebuild"}
    assert results["top"].adapter_response["as_of"] == "2020-01-02 00:00:00.001"
    assert rows(spark, project, "top") == [(9,)]
    assert set(strategies(project.dbt("run")).values()) == {"delta"}
    assert rows(spark, project, "top") == [(1,)]


GRANTS = """
{% macro differential__apply_grants(relation, grant_config, should_revoke) %}
  {% if grant_config %}
    {% do run_query("create table " ~ relation ~ "_granted as select '" ~ grant_config.select[0] ~ "' as who") %}
  {% endif %}
{% endmacro %}
"""


def test_grants_are_applied_where_spark_knows_them(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By dbt's macro, once what is granted is there."""
    monkeypatch.setattr("dbt.adapters.differential.impl.knows_grants", lambda spark: True)
    project.write("macros/grants.sql", GRANTS)
    project.write("models/top.sql", "{{ config(grants={'select': ['someone']}) }} select k from {{ ref('totals') }}")
    project.dbt("run")
    assert rows(spark, project, "top_granted") == [("someone",)]
