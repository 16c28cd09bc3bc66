"""A dbt project as a task group: a task for each model, a sensor for each source with a managed frontier, and one that
waits until a target lag needs a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from airflow.sdk import BaseOperator, TaskGroup

from airflow_differential.assets import asset
from airflow_differential.conditions import Condition
from airflow_differential.operators import DifferentialRunOperator
from airflow_differential.project import Node, Project
from airflow_differential.sensors import SourceFrontierSensor, TargetLagSensor

_STATE = ".dbt_incremental_dd"
_DUE = "due"


class DifferentialTaskGroup(TaskGroup):
    """The models of a project, each downstream of what it reads.

    ``select``: names of models, or ``tag:...`` (default: all). ``complete``: the condition of each managed source, by
    its name in dbt (``feed.flights``). ``with_tests`` runs each model's tests with it (``dbt build``). ``arguments``
    are passed to the models' operators (``profiles_dir``, ``target``, ``spark_remote``, ...), ``sensing`` to the
    sensors. Tasks have their collections' assets as outlets and inlets.

    ``by_target_lag``: the group begins with a sensor that waits until a model must be run for a ``target_lag``; models
    that are not due are skipped, and the others run at the time at which it has found that. Use a schedule such as
    ``@continuous``.

    Raises ValueError for a managed source without a condition, FileNotFoundError if there is no manifest.
    """

    def __init__(
        self,
        group_id: str = "models",
        *,
        project_dir: str,
        manifest: str | None = None,
        state_root: str | None = None,
        select: Collection[str] = (),
        complete: Mapping[str, Condition] | None = None,
        with_tests: bool = False,
        by_target_lag: bool = False,
        arguments: Mapping[str, Any] | None = None,
        sensing: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(group_id=group_id, **kwargs)
        self._project = Project.load(project_dir, manifest)
        self._chosen = self._project.select(select)
        by_lag = _by_target_lag(self.child_id(_DUE)) if by_target_lag else {}
        self._arguments = {"project_dir": project_dir, **by_lag, **(arguments or {})}
        self._sensing = {"state_root": state_root or f"{project_dir}/{_STATE}", **(sensing or {})}
        self._with_tests = with_tests
        self._complete = dict(complete or {})
        self.sources: dict[str, BaseOperator] = {}
        """Sensors by source name."""
        self.models: dict[str, BaseOperator] = {}
        """Tasks by model name."""
        self._fill()
        self.due: BaseOperator | None = self._due() if by_target_lag else None
        """The sensor that waits until something is due; None unless ``by_target_lag``."""

    def _fill(self) -> None:
        tasks: dict[str, BaseOperator] = {}
        for unique_id in sorted({name for node in self._chosen.values() for name in self._read_by(node)}):
            node = self._project.nodes[unique_id]
            if node.kind == "source" and node.is_managed:
                tasks[unique_id] = self.sources[node.name] = self._sensor(node)
        for unique_id, node in self._chosen.items():
            tasks[unique_id] = self.models[node.name] = self._model(node)
        for unique_id, node in self._chosen.items():
            for name in self._read_by(node):
                if name in tasks:
                    tasks[name] >> tasks[unique_id]

    def _read_by(self, node: Node) -> list[str]:
        """The nodes that a node reads; ephemeral models are replaced by what they read."""
        found, pending = [], list(node.reads)
        while pending:
            other = self._project.nodes.get(pending.pop(0))
            if other is not None and other.kind == "ephemeral":
                pending += other.reads
            elif other is not None and other.unique_id not in found:
                found.append(other.unique_id)
        return found

    def _sensor(self, node: Node) -> BaseOperator:
        if node.name not in self._complete:
            raise ValueError(
                f"The frontier of source {node.name} is managed, but it has no condition of completeness. "
                f"Give complete={{{node.name!r}: FilesExist(...)}}, or another one of airflow_differential.conditions."
            )
        return SourceFrontierSensor(
            task_id=f"{_task(node.name)}_complete",
            task_group=self,
            source=node.collection,
            complete=self._complete[node.name],
            first=True,
            outlets=[asset(node.collection)],
            **self._sensing,
        )

    def _due(self) -> BaseOperator:
        """A source that is complete may make a model due, so its sensor comes first."""
        tasks = {self._project.nodes[i].collection: self.models[node.name].task_id for i, node in self._chosen.items()}
        due = TargetLagSensor(task_id=_DUE, task_group=self, names=list(tasks), tasks=tasks, **self._sensing)
        for sensor in self.sources.values():
            sensor >> due
        for model in self.models.values():
            due >> model
        return due

    def _model(self, node: Node) -> BaseOperator:
        command = "seed" if node.kind == "seed" else "build" if self._with_tests and node.has_tests else "run"
        return DifferentialRunOperator(
            task_id=_task(node.name),
            task_group=self,
            select=[node.name],
            command=command,
            inlets=[asset(self._project.nodes[name].collection) for name in self._read_by(node)],
            outlets=[asset(node.collection)],
            **self._arguments,
        )


def _by_target_lag(due: str) -> dict[str, Any]:
    """Arguments of models' operators: a model runs also if one above it is not due. ``due``: the sensor's task."""
    return {"trigger_rule": "none_failed", "dd_time": "{{ ti.xcom_pull(task_ids='" + due + "')['time'] }}"}


def _task(name: str) -> str:
    return name.replace(".", "_")
