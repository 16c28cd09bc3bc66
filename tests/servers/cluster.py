"""A Spark standalone cluster on this machine: a master and two workers, which do not see the driver's folder."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.servers import s3
from tests.servers.jars import classpath, fetched, jars, pyspark_home
from tests.short_lived import SHORT_LIVED

WORKERS = 2
_DAEMON = {"SPARK_DAEMON_JAVA_OPTS": os.environ.get("SPARK_SUBMIT_OPTS") or SHORT_LIVED}
"""As of a session without packages, whose classes `make` has archived."""


def hadoop_aws() -> str:
    """Spark's way to S3, of the version of its Hadoop client, as a package."""
    (client,) = (pyspark_home() / "jars").glob("hadoop-client-api-*.jar")
    return f"org.apache.hadoop:hadoop-aws:{re.sub(r'hadoop-client-api-|[.]jar', '', client.name)}"


def on_class_path() -> dict[str, str]:
    """As what ``spark.jars.packages`` would bring: from the tests' own folder of packages, which all machines see."""
    found = classpath(hadoop_aws())
    return {"spark.driver.extraClassPath": found, "spark.executor.extraClassPath": found}


@cache
def mapped_classes() -> dict[str, str]:
    """Settings with which a session that has these packages on its class path maps the classes that it loads (JEP 350):
    until its first answer it takes two thirds of the processor's time."""
    jars(hadoop_aws())  # before: one fetch must not wait for another within it
    jars(s3.S3PROXY)
    folder = fetched(f"{re.sub('[^A-Za-z0-9.-]+', '_', hadoop_aws())}-classes", _archive_classes)
    options = f"{SHORT_LIVED} -XX:SharedArchiveFile={folder}/spark.jsa -Xlog:disable"
    return {"spark.driver.extraJavaOptions": options, "spark.executor.extraJavaOptions": options}


def _archive_classes(folder: Path) -> None:
    """A JVM writes the archive as it ends, which is after Python; both have this output."""
    options = {"SPARK_SUBMIT_OPTS": f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={folder}/spark.jsa -Xlog:disable"}
    command = [sys.executable, "-m", "tests.servers.small_query_in_s3"]
    done = subprocess.run(command, env={**os.environ, **options}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass
class Cluster:
    """A running cluster."""

    master: str
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, str]:
        """What a profile's ``server_side_parameters`` say to run there, with state in S3."""
        return {
            "spark.master": self.master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.executor.memory": "900m",
            # Two cores in all: jobs of more tasks would be waiting for each other.
            "spark.sql.shuffle.partitions": "2",
            # Code would be generated and compiled for a few rows each time.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            **on_class_path(),
            **mapped_classes(),
        }

    def kill_worker(self) -> None:
        """A machine goes, with what runs on it."""
        worker = self.workers.pop()
        for child in subprocess.run(
            ["pgrep", "-P", str(worker.pid)], capture_output=True, text=True, check=False
        ).stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(child), 9)
        worker.kill()
        worker.wait(30)


@contextmanager
def serving(hidden: Path, memory: str = "1g") -> Iterator[Cluster]:
    """The cluster; ``hidden``: a folder that is empty for its workers, as on other machines. ``memory``: of each
    worker's executors."""
    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    port = _free_port()
    cluster = Cluster(f"spark://127.0.0.1:{port}", folder)
    master = _started(
        folder, "master", ["org.apache.spark.deploy.master.Master", "--port", str(port), "--webui-port", "0"]
    )
    try:
        for number in range(WORKERS):
            add_worker(cluster, number, hidden, memory)
        _wait_for_workers(folder, WORKERS)
        yield cluster
    finally:
        for process in (*cluster.workers, master):
            process.terminate()
        for process in (*cluster.workers, master):
            process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def add_worker(cluster: Cluster, number: int, hidden: Path, memory: str = "1g") -> None:
    """One more machine."""
    size = ["--cores", "1", "--memory", memory, "--webui-port", "0"]
    what = ["org.apache.spark.deploy.worker.Worker", *size, "--work-dir", f"{cluster.folder}/work{number}"]
    worker = _started(cluster.folder, f"worker{number}", [*what, cluster.master], hidden)
    cluster.workers.append(worker)


def _started(folder: Path, name: str, what: list[str], hidden: Path | None = None) -> subprocess.Popen[bytes]:
    command = [str(pyspark_home() / "bin" / "spark-class"), *what, "--host", "127.0.0.1"]
    if hidden is not None and _can_hide():
        mount = f"mount -t tmpfs none '{hidden}' && exec \"$@\""
        command = ["unshare", "--mount", "sh", "-c", mount, "sh", *command]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "384m", **_DAEMON}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(pyspark_home())}
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)


def _can_hide() -> bool:
    """Whether this user may mount; elsewhere the workers see all files."""
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return done.returncode == 0


def _wait_for_workers(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if (folder / "master.log").read_text().count("Registering worker") >= count:
            return
        time.sleep(0.5)
    raise AssertionError(f"the workers are not there:\n{(folder / 'master.log').read_text()[-2000:]}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
