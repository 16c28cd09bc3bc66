"""Operators that run models, advance frontiers, compact and verify collections.

Those that need Spark run dbt or ``dbt-dd`` as a process: against local Spark, the profile's master, or a Spark Connect
server (``spark_remote``).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from airflow.sdk import BaseOperator, Context

from airflow_differential.command import Command, executable
from airflow_differential.links import CollectionsLink
from airflow_differential.outlets import advance, set_outlet_extra
from airflow_differential.times import INTERVAL_END, milliseconds


class _CliOperator(BaseOperator):
    """An operator that runs a command, and terminates it if the task is killed."""

    operator_extra_links = (CollectionsLink(),)

    def __init__(
        self,
        *,
        spark_remote: str | None = None,
        env: Mapping[str, str] | None = None,
        executable: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.spark_remote = spark_remote
        self.env = dict(env or {})
        self.executable = executable
        self._command: Command | None = None

    def call(
        self, *arguments: str, folder: str | None = None, environment: Mapping[str, str] | None = None
    ) -> list[str]:
        """Runs a command and returns its lines. ``environment``: variables in addition to the operator's."""
        lines: list[str] = []

        def report(line: str) -> None:
            lines.append(line)
            self.log.info(line)

        remote = {"SPARK_REMOTE": self.spark_remote} if self.spark_remote else {}
        variables = {"PYTHONUNBUFFERED": "1", **(environment or {}), **remote, **self.env}
        self._command = Command(arguments, variables, folder)
        self._command.run(report)
        return lines

    def on_kill(self) -> None:
        if self._command is not None:
            self._command.end()


class DifferentialRunOperator(_CliOperator):
    """``dbt run`` (or ``build``, ``test``, ``seed``) of a selection, at a logical time.

    ``dd_time``: the time of what sources read, to which models are brought; by default the end of the data interval, so
    that a cleared task produces the same rows again. Returns, for each model, its strategy, frontier, numbers of rows
    added and removed, and seconds. The outlets' events carry the same.
    """

    template_fields: Sequence[str] = (
        "project_dir",
        "profiles_dir",
        "target",
        "select",
        "exclude",
        "dd_time",
        "variables",
        "spark_remote",
        "env",
    )
    ui_color = "#f3e5d8"

    def __init__(
        self,
        *,
        project_dir: str,
        profiles_dir: str | None = None,
        target: str | None = None,
        select: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        command: str = "run",
        dd_time: str = INTERVAL_END,
        variables: Mapping[str, Any] | None = None,
        full_refresh: bool = False,
        threads: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if command not in ("run", "build", "test", "seed"):
            raise ValueError(f"command is {command!r}. It may be run, build, test or seed.")
        self.project_dir = project_dir
        self.profiles_dir = profiles_dir
        self.target = target
        self.select = select
        self.exclude = exclude
        self.command = command
        self.dd_time = dd_time
        self.variables = dict(variables or {})
        self.full_refresh = full_refresh
        self.threads = threads

    def execute(self, context: Context) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="dbt-") as artifacts:
            # A dbt variable (--vars) that changes with each run would make dbt parse the whole project each time.
            environment = {"DBT_DD_TIME": str(milliseconds(self.dd_time))}
            self.call(*self._arguments(artifacts), folder=self.project_dir, environment=environment)
            found = _results(Path(artifacts) / "run_results.json")
            _replace_file(Path(artifacts) / _PARSED, self._parsed)
        if self.select and not found:
            raise ValueError(f"dbt {self.command} has found nothing in {self.project_dir} for select={self.select!r}.")
        models = _of_differential_models(found)
        set_outlet_extra(self, context, models)
        return models

    def _arguments(self, artifacts: str) -> list[str]:
        """``artifacts``: the folder of this run's artifacts, so that parallel tasks do not overwrite each other's."""
        found = [self.executable or executable("dbt"), "--no-use-colors", self.command]
        found += ["--vars", json.dumps(self.variables)] if self.variables else []
        found += ["--project-dir", self.project_dir, "--target-path", artifacts]
        found += ["--partial-parse-file-path", str(self._parsed)] if self._parsed.exists() else []
        found += ["--profiles-dir", self.profiles_dir or self.project_dir]
        for flag, value in (("--target", self.target), ("--threads", self.threads)):
            found += [flag, str(value)] if value is not None else []
        for flag, chosen in (("--select", self.select), ("--exclude", self.exclude)):
            names = chosen.split() if isinstance(chosen, str) else list(chosen)
            found += [flag, *names] if names else []
        return [*found, "--full-refresh"] if self.full_refresh else found

    @property
    def _parsed(self) -> Path:
        """The project as last parsed by a task with the same target."""
        name = f"{self.target or 'default'}-{_PARSED}"
        return Path(self.project_dir) / "target" / "airflow" / name


_PARSED = "partial_parse.msgpack"


def _replace_file(new: Path, old: Path) -> None:
    """Replaces the old file by the new one atomically. Does nothing if the folder cannot be written."""
    with contextlib.suppress(OSError):
        old.parent.mkdir(parents=True, exist_ok=True)
        copy = old.with_name(f".{old.name}-{uuid4().hex}")
        shutil.copyfile(new, copy)
        copy.replace(old)


class AdvanceFrontierOperator(BaseOperator):
    """Declares a source with ``frontier: managed`` complete up to a time. An earlier time changes nothing."""

    template_fields: Sequence[str] = ("state_root", "source", "up_to")
    operator_extra_links = (CollectionsLink(),)
    ui_color = "#dcefe4"

    def __init__(
        self, *, state_root: str, source: str, up_to: str = INTERVAL_END, first: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.state_root = state_root
        self.source = source
        self.up_to = up_to
        self.first = first

    def execute(self, context: Context) -> dict[str, Any]:
        return advance(self, context, self.state_root, self.source, self.up_to, first=self.first)


class _CollectionsOperator(_CliOperator):
    """An operator that calls ``dbt-dd`` for the collections of a state root, or of a dbt project, whose profile also
    configures Spark and storage. Both may be given. Raises ValueError if neither is."""

    template_fields: Sequence[str] = (
        "state_root",
        "project_dir",
        "profiles_dir",
        "target",
        "names",
        "spark_remote",
        "env",
    )

    def __init__(
        self,
        *,
        state_root: str | None = None,
        project_dir: str | None = None,
        profiles_dir: str | None = None,
        target: str | None = None,
        names: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if state_root is None and project_dir is None:
            raise ValueError("there is neither state_root nor project_dir. Say where the collections are.")
        self.state_root = state_root
        self.project_dir = project_dir
        self.profiles_dir = profiles_dir or project_dir
        self.target = target
        self.names = names

    def dbt_dd(self, verb: str, *arguments: str) -> list[str]:
        """Calls ``dbt-dd`` and returns its lines."""
        where: list[str] = []
        for name in ("state_root", "project_dir", "profiles_dir", "target"):
            value = getattr(self, name)
            where += [f"--{name.replace('_', '-')}", value] if value is not None else []
        return self.call(self.executable or executable("dbt-dd"), *where, verb, *self.names, *arguments)


class CompactOperator(_CollectionsOperator):
    """Advances ``since`` of collections to ``upper - retain_history``, but not past the holds of their readers, merges
    their files, and removes those that are not needed any more."""

    template_fields: Sequence[str] = (*_CollectionsOperator.template_fields, "retain_history", "older_than")
    ui_color = "#e8e0ef"

    def __init__(
        self,
        *,
        retain_history: str | None = None,
        vacuum: bool = True,
        older_than: str = "1 day",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.retain_history = retain_history
        self.vacuum = vacuum
        self.older_than = older_than

    def execute(self, context: Context) -> list[str]:
        retain = ["--retain-history", self.retain_history] if self.retain_history else []
        lines = self.dbt_dd("compact", *retain)
        if self.vacuum:
            lines += self.dbt_dd("vacuum", "--older-than", self.older_than)
        return lines


class VerifyOperator(_CollectionsOperator):
    """Compares models with Spark's batch result of their SQL, as of their latest final time. Fails if a row differs."""

    ui_color = "#f1ead2"

    def execute(self, context: Context) -> list[str]:
        return self.dbt_dd("verify")


def _results(path: Path) -> list[dict[str, Any]]:
    """The results of each node in ``run_results.json``; none if dbt had nothing to do."""
    return list(json.loads(path.read_text())["results"]) if path.exists() else []


def _of_differential_models(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The adapter's response for each differential model, by unique id."""
    responses = {result["unique_id"]: (result.get("adapter_response") or {}, result) for result in results}
    return {
        unique_id: {**response, "seconds": result["execution_time"]}
        for unique_id, (response, result) in responses.items()
        if "strategy" in response
    }
