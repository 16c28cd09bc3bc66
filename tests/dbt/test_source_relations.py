"""A source that is in no catalog is a relation all the same: before it was first taken in, and after."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.source_relation import show_source
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.project import Project, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
version: 2
sources:
  - name: raw
    schema: {schema}raw
    config: {{freshness: {{error_after: {{count: 1, period: hour}}}}}}
    tables:
      - name: events
        columns:
          - {{name: k, data_type: int, data_tests: [not_null]}}
          - {{name: v, data_type: bigint, data_tests: [unique]}}
        config: {{meta: {{differential: {{envelope: append, path: data/events, format: json}}}}}}
      - name: untyped
        config: {{meta: {{differential: {{envelope: append, path: data/events, format: json}}}}}}
"""
UNIT = """
unit_tests:
  - name: sums
    model: totals
    given:
      - input: source('raw', 'events')
        rows: [{k: 1, v: 2}, {k: 1, v: 3}]
    expect: {rows: [{k: 1, s: 5}]}
"""


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    """A source of files, a differential model on it, and one that is a table."""
    project = Project(tmp_path)
    project.write("models/sources.yml", SOURCES.format(schema=project.schema))
    project.write("models/totals.sql", "select k, sum(v) as s from {{ source('raw', 'events') }} group by k")
    project.write("models/unit.yml", UNIT)
    project.write(
        "models/copied.sql",
        "{{ config(materialized='table') }} select k, v from {{ source('raw', 'events') }} -- {{ ref('totals') }}",
    )
    project.records("data/events/1.json", [{"k": i % 3, "v": i} for i in range(9)])
    return project


def shown(project: Project, sql: str) -> list[dict[str, Any]]:
    """What `dbt show --inline` tells."""
    project.dbt("show", "--inline", sql, "--output", "json", "--limit", "100")
    (result,) = project.last.result.results
    return [dict(zip(result.agate_table.column_names, row, strict=True)) for row in result.agate_table.rows]


def test_before_the_first_intake(project: Project, spark: SparkSession) -> None:
    assert shown(project, "select count(*) as n from {{ source('raw', 'events') }}") == [{"n": 0}]
    assert dict(spark.table(f"{project.schema}raw.events").dtypes) == {"k": "int", "v": "bigint"}
    project.dbt("test", "--select", "source:*")
    found = project.dbt("show", "--inline", "select * from {{ source('raw', 'untyped') }}", fails=True)
    told = str(found) + repr(project.last.exception)
    assert "was not taken in yet, and declares no columns" in told and "data_type" in told
    project.dbt("source", "freshness", fails=True)
    # What showed nothing shows what the first run takes in.
    project.dbt("run", "--select", "totals")
    assert len(rows(spark, project, "totals")) == 3
    assert spark.table(f"{project.schema}raw.events").count() == 9


def test_a_fresh_build(project: Project, spark: SparkSession) -> None:
    """With a unit test, tests of the source, and a table over it."""
    results = project.dbt("build")
    assert {str(r.status) for r in results.values()} <= {"success", "pass"}
    assert len(rows(spark, project, "copied")) == 9


def test_after_an_intake(project: Project, spark: SparkSession) -> None:
    project.dbt("run", "--select", "totals")
    assert shown(project, "select count(*) as n from {{ source('raw', 'events') }}") == [{"n": 9}]
    project.records("data/events/2.json", [{"k": 7, "v": 7}, {"k": None, "v": 8}])
    project.dbt("run", "--select", "totals")
    assert spark.table(f"{project.schema}raw.events").count() == 11
    assert spark.table(f"{project.schema}raw.events__changes").count() == 11
    found = project.dbt("test", "--select", "source:*", fails=True)
    assert len(found) == 2 and sum("Got" in why for why in found.values()) == 2


def test_freshness_is_the_frontiers(project: Project) -> None:
    project.dbt("run", "--select", "totals")
    project.dbt("source", "freshness", "--select", "source:raw.events")
    (result,) = project.last.result.results
    assert result.age < 600 and result.max_loaded_at <= datetime.now(UTC)


def test_the_catalog_knows_it(project: Project) -> None:
    project.dbt("run", "--select", "totals")
    project.dbt("docs", "generate")
    catalog = json.loads((project.folder / "target" / "catalog.json").read_text())
    columns = catalog["sources"]["source.p.raw.events"]["columns"]
    assert set(columns) == {"k", "v"}


def test_one_that_another_has_made_by_now_stays(project: Project, spark: SparkSession, tmp_path: Path) -> None:
    """Spark drops a view before it replaces it: statements of other threads would miss it."""
    spec = parse_source(
        "raw.events",
        f"{project.schema}raw.events",
        {"envelope": "append", "path": "data", "format": "json"},
        {"k": "int"},
        "",
    )
    spark.sql(f"create schema {project.schema}raw")
    spark.sql(f"create view {spec.relation} as select 'theirs' as k")
    storage, session = Storage(str(tmp_path / "state")), LazySession.of(spark)
    show_source(session, storage, spec, anew=False)
    assert [row.k for row in spark.table(spec.relation).collect()] == ["theirs"]
    show_source(session, storage, spec, anew=True)
    assert spark.table(spec.relation).collect() == []


def test_it_is_made_again_where_its_files_are_gone(project: Project, spark: SparkSession) -> None:
    project.dbt("run", "--select", "totals")
    shown(project, "select * from {{ source('raw', 'events') }}")
    state = project.folder / ".dbt_incremental_dd" / "collections"
    for folder in state.iterdir():
        shutil.rmtree(folder)
    spark.catalog.clearCache()
    assert shown(project, "select count(*) as n from {{ source('raw', 'events') }}") == [{"n": 0}]
    project.dbt("run", "--select", "totals", "--full-refresh")
    assert spark.table(f"{project.schema}raw.events").count() == 9
