"""A Spark Connect server of the tests' own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    """A server with a warehouse in the test's folder."""
    with serving(tmp_path) as remote:
        yield remote


@contextmanager
def serving(folder: Path, own: Mapping[str, str] | None = None) -> Iterator[str]:
    """The Connect server that pyspark ships, with its warehouse and metastore in the folder; its address. ``own``:
    settings that come before the usual ones."""
    import importlib.util

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.submodule_search_locations
    submit = Path(found.submodule_search_locations[0]) / "bin" / "spark-submit"
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        **(own or {}),
    }
    arguments = [
        str(submit),
        "--master",
        settings.pop("spark.master", "local[2]"),
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
    ]
    for name, value in settings.items():
        arguments += ["--conf", f"{name}={value}"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen([*arguments, "spark-internal"], stdout=log, stderr=log, env=environment, cwd=folder)
    try:
        _wait(port, server)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise AssertionError("the server does not answer")
