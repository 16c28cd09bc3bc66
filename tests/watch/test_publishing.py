"""`dbt-dd watch --publish`: what exposures name is published while the project is watched."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.cli import main
from dbt_incremental_dd.cli.publishing import publishing
from dbt_incremental_dd.watch import watcher
from dbt_incremental_dd.watch.project import Project as Warm
from dbt_incremental_dd.watch.watcher import WatchedProject, watch
from tests.dbt.project import Project
from tests.watch.test_watcher import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SOURCES = """
sources:
  - name: raw
    schema: raw
    tables:
      - name: a
        columns: [{name: k, data_type: bigint}]
        config: {meta: {differential: {envelope: append, path: in, format: json}}}
"""
_EXPOSURE = """
exposures:
  - name: all_files
    type: application
    owner: {{name: tests}}
    depends_on: [ref('rows')]
    config: {{meta: {{differential: {{files: {folder}, format: json}}}}}}
"""


def _published(folder: Path) -> list[int]:
    """The keys in the files, in the order of their times."""
    paths = sorted(folder.rglob("date=*/*/*.json"), key=lambda path: int(path.stem))
    return [json.loads(line)["k"] for path in paths for line in path.read_text().splitlines()]


def test_exposures_are_published_while_the_project_is_watched(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "_PROJECT_POLL_SECONDS", 0.1)
    project = Project(tmp_path, state_root=str(tmp_path / "state"))
    project.write("models/sources.yml", _SOURCES)
    project.write("models/rows.sql", "select k from {{ source('raw', 'a') }}")
    project.write("models/exposures.yml", _EXPOSURE.format(folder="out"))
    project.records("in/1.json", [{"k": 1}])
    told: list[str] = []
    watched = WatchedProject(Warm(str(tmp_path), str(tmp_path)), told.append)
    stop = threading.Event()
    with publishing(watched, lambda: Database(str(tmp_path / "state"))):
        thread = threading.Thread(target=watch, args=([watched], stop))
        thread.start()
        try:
            until(lambda: _published(tmp_path / "out") == [1])
            project.records("in/2.json", [{"k": 2}])
            until(lambda: _published(tmp_path / "out") == [1, 2])
            project.write("models/exposures.yml", _EXPOSURE.format(folder="elsewhere"))
            until(lambda: sorted(_published(tmp_path / "elsewhere")) == [1, 2])
        finally:
            stop.set()
            thread.join()
    assert any("exposure all_files: publishing" in line for line in told), told
    assert not any("FAILED" in line for line in told), told
    project.dbt("parse")
    where = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    assert main(["publish", "--exposure", "all_files", "--once", *where]) == 0
    assert main(["publish", "--exposure", "another", "--once", *where]) == 1
