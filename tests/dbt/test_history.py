"""Histories and snapshots in a dbt project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dbt_incremental_dd
from dbt_incremental_dd.runtime.verify import verify
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCES = """
sources:
  - name: shop
    schema: shop
    tables:
      - name: customers
        columns:
          - {name: id, data_type: bigint}
          - {name: name, data_type: string}
          - {name: changed, data_type: timestamp}
          - {name: gone, data_type: boolean}
        config:
          meta:
            differential: {envelope: upsert, key: id, path: data, format: json, deleted_when: gone}
"""
_SNAPSHOTS = """
snapshots:
  - name: by_time
    relation: ref('customers')
    config: {unique_key: id, strategy: timestamp, updated_at: changed, hard_deletes: invalidate}
  - name: by_check
    relation: ref('customers')
    config:
      unique_key: [id]
      strategy: check
      check_cols: [name]
      hard_deletes: new_record
      dbt_valid_to_current: "to_date('9999-12-31')"
      snapshot_meta_column_names: {dbt_valid_from: since}
  - name: ignoring
    relation: source('shop', 'customers')
    config: {unique_key: id, strategy: check, check_cols: all}
"""
_ANN = {"id": 1, "name": "ann", "changed": "2024-01-01T00:00:00Z"}
_BOB = {"id": 2, "name": "bob", "changed": "2024-01-02T00:00:00Z"}


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("models/sources.yml", _SOURCES)
    made.write("models/customers.sql", "select id, name, changed from {{ source('shop', 'customers') }}")
    made.records("data/1.json", [_ANN, _BOB])
    return made


def _rows(project: Project, name: str, *columns: str) -> list[tuple[Any, ...]]:
    collection = dbt_incremental_dd.open(str(project.folder / ".dbt_incremental_dd"))[f"{project.schema}.{name}"]
    found = collection.as_of(collection.frontiers.upper - 1).to_pylist()
    return sorted(tuple(str(row[column])[:10] for column in columns) for row in found for _ in range(row["dd_diff"]))


def _exact(spark: SparkSession, project: Project) -> bool:
    return all(found.exact for found in verify(spark, Storage(str(project.folder / ".dbt_incremental_dd"))))


def test_a_model_is_the_history_of_another(spark: SparkSession, project: Project) -> None:
    project.write("models/all_rows.sql", "select * from {{ dd_history(ref('customers')) }}")
    project.write("models/versions.sql", "{{ dd_history(ref('customers'), unique_key='id', updated_at='changed') }}")
    names = "{'unique_key': 'id', 'names': {'valid_from': 'since'}}"
    project.write(
        "models/named.sql", f"{{{{ config(history={names}) }}}} select id, name from {{{{ ref('customers') }}}}"
    )
    project.write("models/now.sql", "select id, name from {{ ref('versions') }} where is_current")
    project.dbt("run", "--vars", "{dd_time: 2024-03-01}")
    project.records(
        "data/2.json", [{**_ANN, "name": "ANN", "changed": "2024-02-01T00:00:00Z"}, {"id": 2, "gone": True}]
    )
    outcomes = project.dbt("run", "--vars", "{dd_time: 2024-03-02}")
    assert {outcome.adapter_response["strategy"] for outcome in outcomes.values()} == {"delta"}
    columns = ("id", "name", "valid_from", "valid_to", "is_current")
    assert _rows(project, "versions", *columns) == [
        ("1", "ANN", "2024-02-01", "None", "True"),
        ("1", "ann", "2024-01-01", "2024-02-01", "False"),
        ("2", "bob", "2024-01-02", "2024-03-02", "False"),
    ]
    by_run = [("1", "ANN", "2024-03-02"), ("1", "ann", "2024-03-01"), ("2", "bob", "2024-03-01")]
    assert _rows(project, "all_rows", "id", "name", "valid_from") == by_run
    assert _rows(project, "named", "id", "name", "since") == by_run
    assert _rows(project, "now", "id", "name") == [("1", "ANN")]
    assert _exact(spark, project)
    kept = _rows(project, "versions", *columns)
    project.dbt("run", "--full-refresh", "--vars", "{dd_time: 2024-03-03}")
    assert _rows(project, "versions", *columns) == kept
    spark.sql(f"SELECT is_current FROM {project.schema}.versions").collect()
    assert "valid_from" in spark.table(f"{project.schema}.all_rows").columns


def test_snapshots_are_kept_by_what_has_changed(spark: SparkSession, project: Project) -> None:
    project.write("snapshots/snapshots.yml", _SNAPSHOTS)
    project.write("models/present.sql", "select id, name from {{ ref('by_time') }} where dbt_valid_to is null")
    project.dbt("build", "--vars", "{dd_time: 2024-03-01}")
    project.records(
        "data/2.json", [{**_ANN, "name": "ANN", "changed": "2024-02-01T00:00:00Z"}, {"id": 2, "gone": True}]
    )
    outcomes = project.dbt("build", "--vars", "{dd_time: 2024-03-02}")
    assert {outcome.adapter_response["strategy"] for outcome in outcomes.values()} == {"delta"}
    assert _rows(project, "by_time", "name", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to") == [
        ("ANN", "2024-02-01", "2024-02-01", "None"),
        ("ann", "2024-01-01", "2024-01-01", "2024-02-01"),
        ("bob", "2024-01-02", "2024-01-02", "2024-03-02"),
    ]
    assert _rows(project, "by_check", "name", "since", "dbt_valid_to", "dbt_is_deleted") == [
        ("ANN", "2024-03-02", "9999-12-31", "False"),
        ("ann", "2024-03-01", "2024-03-02", "False"),
        ("bob", "2024-03-01", "2024-03-02", "False"),
        ("bob", "2024-03-02", "9999-12-31", "True"),
    ]
    assert _rows(project, "ignoring", "name", "dbt_valid_to") == [
        ("ANN", "None"),
        ("ann", "2024-03-02"),
        ("bob", "None"),
    ]
    assert _rows(project, "present", "id", "name") == [("1", "ANN")]
    assert len({id for (id,) in _rows(project, "by_check", "dbt_scd_id")}) == 4
    assert _exact(spark, project)
    assert {o.adapter_response["strategy"] for o in project.dbt("snapshot").values()} == {"skip"}


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("history='yes'", "history is 'yes'"),
        ("history={'key': 'id'}", "unknown setting history.key"),
        ("history={'updated_at': 'changed'}", "but not of what"),
        ("history={'unique_key': 7}", "history.unique_key is 7"),
        ("history={'unique_key': 'no'}", "unique_key of its history names no, which is no column"),
        ("history={'names': {'valid_form': 'x'}}", "history.names is"),
        ("histori=true", "Did you mean history?"),
    ],
)
def test_settings_that_mean_nothing_are_refused(project: Project, config: str, told: str) -> None:
    project.write("models/h.sql", f"{{{{ config({config}) }}}} select id from {{{{ ref('customers') }}}}")
    assert told in str(project.dbt("run", fails=True)["h"])


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("{unique_key: id, strategy: own}", "strategy is 'own'"),
        ("{unique_key: id, strategy: check, check_cols: [other]}", "names other, which is no column"),
        ("{unique_key: id, strategy: timestamp, updated_at: changed, dbt_valid_to_current: x}", "dbt_valid_to_current"),
    ],
)
def test_snapshots_that_cannot_be_kept_are_refused(project: Project, config: str, told: str) -> None:
    project.write("snapshots/s.yml", f"snapshots: [{{name: s, relation: ref('customers'), config: {config}}}]")
    assert told in str(project.dbt("build", fails=True)["s"])


def test_nothing_is_stored_of_a_preview(project: Project) -> None:
    project.write("models/h.sql", "{{ dd_history(ref('customers'), unique_key='id') }}")
    project.dbt("run", "--select", "customers")
    project.dbt("run", "--select", "h", "--empty")
    assert not (project.folder / ".dbt_incremental_dd/collections" / f"{project.schema}.h").exists()
