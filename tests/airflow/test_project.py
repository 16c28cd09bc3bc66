"""A DAG from a project's manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_differential.conditions import FilesExist
from airflow_differential.operators import DifferentialRunOperator
from airflow_differential.project import Project
from airflow_differential.sensors import TargetLagSensor
from airflow_differential.task_group import DifferentialTaskGroup


def node(
    name: str, *reads: str, kind: str = "model", materialized: str = "differential", **more: Any
) -> dict[str, Any]:
    """A node of a manifest."""
    return {
        "unique_id": f"{kind}.p.{name}",
        "resource_type": kind,
        "name": name,
        "schema": "M",
        "alias": name,
        "config": {"materialized": materialized},
        "depends_on": {"nodes": list(reads)},
        "tags": ["daily"] if name == "sums" else [],
        **more,
    }


def source(name: str, **settings: Any) -> dict[str, Any]:
    """A source of a manifest."""
    own = {"unique_id": f"source.p.feed.{name}", "source_name": "feed", "name": name, "schema": "feed"}
    return {**own, "identifier": name.upper(), "config": {"meta": {"differential": settings}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project that has been parsed."""
    nodes = [
        node("rows", "source.p.feed.events", materialized="ephemeral"),
        node("sums", "model.p.rows", "seed.p.names"),
        node("top", "model.p.sums", "source.p.feed.prices"),
        node("names", kind="seed", materialized="seed"),
        node("top_is_unique", "model.p.top", kind="test"),
        node("off", config={"enabled": False, "materialized": "differential"}),
    ]
    sources = [source("events", frontier="managed"), source("prices")]
    manifest = {"nodes": {n["unique_id"]: n for n in nodes}, "sources": {s["unique_id"]: s for s in sources}}
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path


def group(folder: Path, **options: Any) -> DifferentialTaskGroup:
    with DAG("d"):
        return DifferentialTaskGroup(project_dir=str(folder), complete={"feed.events": FilesExist("x")}, **options)


def test_a_task_for_each_model_after_what_it_reads(folder: Path) -> None:
    made = group(folder, with_tests=True)
    after = {task.task_id: task.upstream_task_ids for task in (*made.models.values(), *made.sources.values())}
    assert after == {
        "models.feed_events_complete": set(),
        "models.names": set(),
        "models.sums": {"models.feed_events_complete", "models.names"},
        "models.top": {"models.sums"},
    }
    commands = {name: task.command for name, task in made.models.items()}  # type: ignore[attr-defined]
    assert commands == {"names": "seed", "sums": "run", "top": "build"}
    top = made.models["top"]
    assert [a.name for a in top.outlets] == ["m.top"]
    assert [a.name for a in top.inlets] == ["m.sums", "feed.prices"]
    assert [a.uri for a in made.sources["feed.events"].outlets] == ["x-differential://feed.events"]


def test_selections(folder: Path) -> None:
    assert set(group(folder, select=["tag:daily", "names"]).models) == {"sums", "names"}
    assert not group(folder, select=["top"]).sources, "it reads no managed source itself"
    with pytest.raises(ValueError, match=r"no model .tops'.*names, sums, top"):
        group(folder, select=["tops"])


def test_what_is_missing_is_told(folder: Path, tmp_path: Path) -> None:
    with DAG("d"), pytest.raises(ValueError, match=r"feed\.events.*complete="):
        DifferentialTaskGroup(project_dir=str(folder))
    with pytest.raises(FileNotFoundError, match="dbt parse"):
        Project.load(str(tmp_path / "elsewhere"))


def test_models_run_when_target_lags_need_it(folder: Path) -> None:
    made = group(folder, by_target_lag=True)
    due = made.due
    assert isinstance(due, TargetLagSensor) and due.upstream_task_ids == {"models.feed_events_complete"}
    assert due.tasks == {"m.sums": "models.sums", "m.top": "models.top", "m.names": "models.names"}
    for task in made.models.values():
        assert isinstance(task, DifferentialRunOperator) and "models.due" in task.upstream_task_ids
        assert (
            task.trigger_rule == "none_failed" and task.dd_time == "{{ ti.xcom_pull(task_ids='models.due')['time'] }}"
        )
    own = group(folder, by_target_lag=True, arguments={"dd_time": "2013-06-01T00:00:00Z"}).models["top"]
    assert isinstance(own, DifferentialRunOperator) and own.dd_time == "2013-06-01T00:00:00Z"
    assert group(folder).due is None
