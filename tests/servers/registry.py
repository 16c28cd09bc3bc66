"""A schema registry of the tests' own: Apicurio's, which speaks Confluent's protocol; it keeps nothing."""

from __future__ import annotations

import json
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers.jars import fetched, resolve
from tests.servers.kafka import free_ports
from tests.short_lived import SHORT_LIVED

NAME, VERSION = "apicurio-registry-app", "3.0.9"
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
_WANTED = f"""\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tests" module="registry"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="io.apicurio" name="{NAME}" rev="{VERSION}" transitive="false" conf="default->*">
      <artifact name="{NAME}" type="tar.gz" ext="tar.gz" m:classifier="all"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def _home() -> Path:
    """The folder of the unpacked server, fetched where it is not there."""
    return fetched(f"{NAME}-{VERSION}", _fetch)


def _fetch(folder: Path) -> None:
    (folder / "settings.xml").write_text(_SETTINGS)
    (folder / "ivy.xml").write_text(_WANTED)
    described = ["-settings", f"{folder}/settings.xml", "-ivy", f"{folder}/ivy.xml"]
    resolve("the registry", *described, "-retrieve", f"{folder}/[artifact].[ext]")
    with tarfile.open(folder / f"{NAME}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    (folder / f"{NAME}.tar.gz").unlink()


class Registry:
    """A running one."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/apis/ccompat/v7"

    def register(self, subject: str, schema: Any, references: list[dict[str, Any]] | None = None) -> int:
        """The schema's number."""
        body = {"schema": json.dumps(schema), "schemaType": "AVRO", "references": references or []}
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            json.dumps(body).encode(),
            {"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(json.load(answer)["id"])

    def answers(self) -> bool:
        """Whether it is there."""
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    """A running one, ended at the end."""
    home, (port,) = _home(), free_ports(1)
    where = [f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1", *SHORT_LIVED.split(), "-Xmx384m"]
    with (folder / "registry.log").open("wb") as log:
        command = ["java", *where, "-jar", f"{home}/{NAME}-{VERSION}-runner.jar"]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        one, deadline = Registry(port), time.monotonic() + 180
        while not one.answers():
            assert process.poll() is None, (folder / "registry.log").read_text()[-4000:]
            assert time.monotonic() < deadline, "the registry does not answer"
            time.sleep(0.5)
        yield one
    finally:
        process.kill()
        process.wait(30)
