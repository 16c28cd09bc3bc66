"""A project whose commands run in processes of their own that find no Java: whoever asks for a session ends one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_incremental_dd.runtime.verify import verify
from dbt_incremental_dd.trace.layout import Storage
from tests.dbt.project import Project
from tests.fork_server import fork_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class JavaFree:
    """``project``: its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = Project(folder)

    def dbt(self, *command: str, java: bool = False, code: int = 0) -> str:
        """What the command says, which ends with ``code``; with ``java`` it may open a session."""
        environment = dict(os.environ)
        if not java:
            environment = {k: v for k, v in environment.items() if k != "JAVA_HOME"} | {"PATH": "/nowhere"}
        folders = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        found, text = fork_server().call(["dbt", *command, *folders], environment, self.folder)
        assert found == code, text
        return text

    @property
    def results(self) -> list[dict[str, Any]]:
        """Of the last command."""
        found: list[dict[str, Any]] = json.loads((self.folder / "target" / "run_results.json").read_text())["results"]
        return found

    @property
    def state(self) -> Path:
        """Its state root."""
        return self.folder / ".dbt_incremental_dd"

    def verify(self, spark: SparkSession, models: int) -> None:
        """All of so many models are exact."""
        found = verify(spark, Storage(str(self.state)))
        assert [v for v in found if not v.exact] == [] and len(found) == models
