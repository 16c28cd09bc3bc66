"""A dbt project in a folder, run in this process on the suite's Spark session."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_NUMBERS = itertools.count()
_COLOUR = re.compile(r"\x1b\[\d*m")


class Project:
    """Write files, then ``dbt("run")``. Each has a schema of its own."""

    def __init__(self, folder: Path, **profile: Any) -> None:
        self.folder = folder
        self.schema = schema = f"dbt{next(_NUMBERS)}"
        self.last: Any = None
        self.warnings: list[str] = []
        """Those of the last command."""
        self.told: list[str] = []
        """What the last command has said, warnings included, without colours."""
        target = {"type": "differential", "schema": schema, "threads": 2, **profile}
        self.write("profiles.yml", yaml.safe_dump({"p": {"target": "dev", "outputs": {"dev": target}}}))
        config = {
            "name": "p",
            "profile": "p",
            "models": {"+materialized": "differential"},
            "flags": {"send_anonymous_usage_stats": False},
        }
        self.write("dbt_project.yml", yaml.safe_dump(config))

    def write(self, path: str, text: str) -> None:
        """A file of the project."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def records(self, path: str, rows: list[dict[str, Any]]) -> None:
        """A JSON-lines file."""
        self.write(path, "".join(json.dumps(row) + "\n" for row in rows))

    def dbt(self, *arguments: str, fails: bool = False) -> dict[str, Any]:
        """Results by node name. With ``fails`` it must not succeed, and messages are given instead."""
        from dbt.cli.main import dbtRunner
        from dbt_common.tests import enable_test_caching

        enable_test_caching()  # dbt's own: the macros of all projects are parsed once
        folder = str(self.folder)
        self.warnings, self.told = [], []
        runner = dbtRunner(callbacks=[self._note])
        self.last = runner.invoke([*arguments, "--project-dir", folder, "--profiles-dir", folder, "--quiet"])
        if not fails:
            assert self.last.success, self._why()
        assert self.last.success is not fails, "expected to fail"
        results = getattr(self.last.result, "results", None) or []
        return {r.node.name: (str(r.message) if fails else r) for r in results}

    def _note(self, event: Any) -> None:
        if event.info.level == "warn":
            self.warnings.append(event.info.msg)
        if event.info.level != "debug":
            self.told.append(_COLOUR.sub("", event.info.msg))

    def _why(self) -> str:
        if self.last.exception:
            return repr(self.last.exception)
        return "\n".join(f"{r.node.name}: {r.message}" for r in self.last.result if str(r.status) in ("error", "fail"))


def rows(spark: SparkSession, project: Project, name: str) -> list[tuple[Any, ...]]:
    """A relation's rows, sorted."""
    return sorted((tuple(row) for row in spark.table(f"{project.schema}.{name}").collect()), key=str)


def strategies(results: dict[str, Any]) -> dict[str, str]:
    """How each differential model was brought up to date."""
    return {name: r.adapter_response["strategy"] for name, r in results.items() if "strategy" in r.adapter_response}
