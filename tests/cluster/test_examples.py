"""Example projects on two workers that share no disk with the driver, with sources and state in S3."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.project import Moved, require_deltas, require_exact
from tests.connect import serving as connect
from tests.servers.cluster import Cluster, add_worker, on_class_path, serving
from tests.servers.s3 import S3

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the driver works; the workers find it empty."""
    return tmp_path_factory.mktemp("projects")


@pytest.fixture(scope="module")
def cluster(projects: Path) -> Iterator[Cluster]:
    with serving(projects) as found:
        yield found


@pytest.mark.parametrize(("name", "engine"), [("payments", "auto"), ("wikirecent", "spark")])
def test_a_project_on_the_cluster_is_exact(name: str, engine: str, cluster: Cluster, s3: S3, projects: Path) -> None:
    moved = Moved(name, projects, s3, cluster.settings, engine=engine)
    told = moved.rounds(2, 2_000)
    require_exact(told, 2)
    require_deltas(told)


def test_a_project_over_connect_is_exact(cluster: Cluster, s3: S3, projects: Path, tmp_path: Path) -> None:
    settings = {name: value for name, value in cluster.settings.items() if name != "spark.executor.extraClassPath"}
    with connect(tmp_path, {**settings, **on_class_path()}) as remote:
        moved = Moved("clickstream", projects, s3, {})
        told = moved.rounds(2, 2_000, {"SPARK_REMOTE": remote})
    require_exact(told, 2)
    require_deltas(told)
    assert s3.secret not in (tmp_path / "server.log").read_text()


def test_a_worker_that_is_killed_during_a_run(cluster: Cluster, s3: S3, projects: Path) -> None:
    moved = Moved("clickstream", projects, s3, cluster.settings, "killed", engine="spark")
    running = moved.start(1, 2_000)
    log = moved.folder / "logs" / "dbt.log"
    deadline = time.monotonic() + 180
    while not (log.exists() and "START sql differential" in log.read_text()) and time.monotonic() < deadline:
        assert running.poll() is None
        time.sleep(0.2)
    time.sleep(3)  # into the first load, on both workers
    assert "OK created" not in log.read_text()
    cluster.kill_worker()
    told, _ = running.communicate(timeout=400)
    if running.returncode == 0:
        require_exact([json.loads(line) for line in told.splitlines() if line.startswith('{"round"')], 1)
    add_worker(cluster, 2, projects)
    require_exact(moved.rounds(2, 2_000), 2)  # with files that the first process did not have
