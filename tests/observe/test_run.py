"""Runs of dbt as servers hear of them: by OpenLineage's events and OpenTelemetry's spans."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from openlineage.client.event_v2 import RunEvent

from dbt_incremental_dd.observe import background
from tests.dbt.project import Project
from tests.observe.lineage_spec import events_of
from tests.observe.receiver import receiver
from tests.observe.traces import SpanRow, spans_of

SOURCES = """
version: 2
sources:
  - name: shop
    tables:
      - name: orders
        columns:
          - {name: id, data_type: int}
          - {name: customer, data_type: string}
          - {name: amount, data_type: "decimal(12,2)"}
        config: {meta: {differential: {envelope: append, path: orders, format: csv}}}
"""
MODELS = {
    "paid": "select customer, sum(amount) as amount from {{ source('shop', 'orders') }} group by customer",
    "best": "select customer from {{ ref('paid') }} where amount > 5",
    "broken": "{{ config(arranged_by=[['nowhere']]) }} select customer from {{ ref('paid') }}",
}
TRACE, TASK = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
FLOW = f"airflow//scheduler/shop.daily/{uuid4()}"


def shop(folder: Path, **profile: Any) -> Project:
    project = Project(folder, **profile)
    project.write("models/sources.yml", SOURCES)
    for name, sql in MODELS.items():
        project.write(f"models/{name}.sql", sql)
    project.write("orders/1.csv", "1,ann,4.00\n2,ann,3.00\n3,bob,1.00\n")
    return project


def test_a_run_of_dbt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models and one that fails: an initial load, a delta, then no change, below a task of Airflow."""
    monkeypatch.setattr(background, "WAIT_SECONDS", 60.0)  # both libraries are imported first
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with receiver() as lineage, receiver() as traces:
        project = shop(tmp_path, observe={"opentelemetry": {"endpoint": traces.url}})
        monkeypatch.setenv("OPENLINEAGE_URL", lineage.url)
        monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "warehouse")
        monkeypatch.setenv("OPENLINEAGE_PARENT_ID", FLOW)
        monkeypatch.setenv("TRACEPARENT", f"00-{TRACE}-{TASK}-01")
        project.dbt("run", fails=True)
        first = events_of(lineage)
        check_failed(project, spans_of(traces.bodies))
        lineage.bodies.clear()
        traces.bodies.clear()
        project.write("orders/2.csv", "4,bob,9.00\n")
        project.dbt("run", "--exclude", "broken")
        second = events_of(lineage)
        check_traced(project, spans_of(traces.bodies))
        lineage.bodies.clear()
        project.dbt("run", "--exclude", "broken")
        third = events_of(lineage)
    assert set(traces.paths) == {"/v1/traces"}
    assert kinds(first) == {
        "dbt-run-p": ["START", "FAIL"],
        f"p.{project.schema}.paid": ["START", "COMPLETE"],
        f"p.{project.schema}.best": ["START", "COMPLETE"],
        f"p.{project.schema}.broken": ["START", "FAIL"],
    }
    assert {event.job.namespace for event in first} == {"warehouse"}
    check_parents(first)
    broken = last(first, "broken").run.facets or {}
    assert "nowhere" in broken["errorMessage"].message and "dd_run" not in broken  # type: ignore[attr-defined]
    check_paid(project, last(second, "paid"))
    best = last(second, "best")
    state = f"{tmp_path}/.dbt_incremental_dd"
    assert [(one.namespace, one.name) for one in best.inputs or []] == [
        (one.namespace, one.name) for one in last(second, "paid").outputs or []
    ]
    same: Any = last(third, "paid")
    assert same.run.facets["dd_run"].strategy == "skip" and same.outputs[0].facets["schema"].fields
    assert same.inputs[0].inputFacets["inputStatistics"].rowCount == 0
    assert identifiers(best.outputs) == [(f"file:{state}", f"{project.schema}.best")]
    assert identifiers(best.inputs) == [(f"file:{state}", f"{project.schema}.paid")]


def check_failed(project: Project, spans: list[SpanRow]) -> None:
    """The model that has failed, and the command with it."""
    by_name = {span.name: span for span in spans}
    broken = by_name[f"model {project.schema}.broken"]
    assert broken.is_error and broken.attributes["error.type"] == "ConfigError"
    assert "dd.strategy" not in broken.attributes
    ((event),) = broken.events
    assert "nowhere" in event["exception.message"] and "exception.stacktrace" not in event
    assert by_name["dbt run"].is_error and not by_name[f"model {project.schema}.paid"].is_error


def check_traced(project: Project, spans: list[SpanRow]) -> None:
    """Spans are in each other, below Airflow's, and have what a run did."""
    by_id = {span.id: span for span in spans}
    assert len(by_id) == len(spans) and {span.trace for span in spans} == {TRACE}
    (command,) = [span for span in spans if span.parent not in by_id]
    assert (command.name, command.parent, command.is_error) == ("dbt run", TASK, False)
    assert command.resource["service.name"] == "dbt-incremental-dd"
    assert command.attributes["dd.project"] == "p"
    for span in spans:
        above = by_id.get(span.parent, span)
        slack = 20_000_000  # two clocks: one tells when a phase began, another how long it took
        assert above.began - slack <= span.began <= span.ended <= above.ended + slack, span.name
    paid = next(span for span in spans if span.name == f"model {project.schema}.paid")
    assert by_id[paid.parent] is command
    told = {
        "db.system.name": "spark",
        "db.namespace": project.schema,
        "db.collection.name": "paid",
        "dd.unique_id": "model.p.paid",
        "dd.inputs": ["shop.orders"],
        "dd.strategy": "delta",
        "dd.rows_added": 1,
        "dd.rows_removed": 1,
        "dd.input_rows": 1,
    }
    assert told.items() <= paid.attributes.items() and paid.attributes["dd.bytes_written"] > 0
    phases = sorted((span for span in spans if span.parent == paid.id), key=lambda span: span.began)
    assert [span.name for span in phases][:6] == ["inputs", "plan", "compute", "write", "commit", "relations"]
    (intake,) = [span for span in spans if span.parent == phases[0].id]
    assert intake.name == "intake shop.orders" and intake.attributes["dd.rows"] == 1


def check_parents(events: list[RunEvent]) -> None:
    """Models are below dbt's command, which is below Airflow's task; a model's two events are of one run."""
    namespace, job, run_id = FLOW.rsplit("/", 2)
    (command,) = {event.run.runId for event in events if event.job.name == "dbt-run-p"}
    for event in events:
        parent: Any = (event.run.facets or {})["parent"]
        is_command = event.job.name == "dbt-run-p"
        above = (namespace, job, run_id) if is_command else ("warehouse", "dbt-run-p", command)
        assert (parent.job.namespace, parent.job.name, parent.run.runId) == above
        assert (parent.root.job.name, parent.root.run.runId) == (job, run_id)
    runs = {(event.job.name, event.run.runId) for event in events}
    assert len(runs) == len({name for name, _ in runs})


def check_paid(project: Project, event: RunEvent) -> None:
    """Its facets, after a delta of one row."""
    ((source,), (output,)) = (event.inputs or [], event.outputs or [])
    assert (source.namespace, source.name) == ("file", f"{project.folder}/orders")
    facets: Any = {**(event.job.facets or {}), **(event.run.facets or {}), **(output.facets or {})}
    assert facets["sql"].query.startswith("select customer, sum(amount)") and facets["sql"].dialect == "spark"
    assert facets["processing_engine"].name == "dbt-incremental-dd"
    assert [(one.name, one.type) for one in facets["schema"].fields] == [
        ("customer", "string"),
        ("amount", "decimal(22,2)"),
    ]
    (made_of,) = facets["columnLineage"].fields["amount"].inputFields
    assert (made_of.namespace, made_of.name, made_of.field) == (source.namespace, source.name, "amount")
    assert [(one.type, one.subtype) for one in made_of.transformations] == [("DIRECT", "AGGREGATION")]
    assert [one.field for one in facets["columnLineage"].dataset] == ["customer"]
    told = facets["dd_run"]
    assert (told.strategy, told.rowsAdded, told.rowsRemoved, told.inputRows) == ("delta", 1, 1, 1)
    assert {"inputs", "intake", "plan", "compute", "write", "commit"} <= set(told.phases)
    written: Any = (output.outputFacets or {})["outputStatistics"]
    assert written.rowCount == 2 and written.size > 0
    read: Any = (source.inputFacets or {})["inputStatistics"]
    assert read.rowCount == 1


def kinds(events: list[RunEvent]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for event in events:
        assert event.eventType is not None
        found.setdefault(event.job.name, []).append(event.eventType.value)
    return found


def last(events: list[RunEvent], model: str) -> RunEvent:
    return [event for event in events if event.job.name.endswith(f".{model}")][-1]


def identifiers(datasets: Any) -> list[tuple[str, str]]:
    return [(one.namespace, one.name) for of in datasets for one in of.facets["symlinks"].identifiers]
