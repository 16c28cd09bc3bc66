"""An S3 server on a folder of this machine: s3proxy, which keeps conditional writes."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.jars import classpath

S3PROXY = "org.gaul:s3proxy:4.1.0"
_QUIET = '<configuration><root level="{level}"><appender-ref ref="out"/></root>{out}</configuration>'
_OUT = (
    '<appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%msg%n</pattern></encoder>'
    "</appender>"
)


@dataclass(frozen=True)
class S3:
    """A running server with one bucket."""

    endpoint: str
    folder: Path
    log: Path
    bucket: str = "state"
    key: str = "the-identity"
    secret: str = "a-credential-that-nobody-may-see"

    @property
    def root(self) -> str:
        """The bucket as a URI."""
        return f"s3://{self.bucket}"

    @property
    def options(self) -> dict[str, str]:
        """As in a profile's ``storage_options``."""
        return self.through(self.endpoint)

    def through(self, endpoint: str) -> dict[str, str]:
        """The options that lead to a proxy."""
        return {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def refused(self) -> tuple[dict[str, str], str]:
        """Options that the server refuses, and what of them nobody may see."""
        secret = "not-the-credential-of-it"
        return {**self.options, "AWS_SECRET_ACCESS_KEY": secret}, secret


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(folder: Path) -> Iterator[S3]:
    """The server, with its objects in the folder."""
    port = free_port()
    found = S3(f"http://127.0.0.1:{port}", folder / "objects", folder / "s3proxy.log")
    (found.folder / found.bucket).mkdir(parents=True)
    settings = {
        "s3proxy.endpoint": found.endpoint,
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": found.key,
        "s3proxy.credential": found.secret,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": str(found.folder),
    }
    (folder / "s3proxy.conf").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    (folder / "logback.xml").write_text(_QUIET.format(level="WARN", out=_OUT))
    command = ["java", "-Xmx512m", f"-Dlogback.configurationFile={folder}/logback.xml", "-cp", classpath(S3PROXY)]
    with found.log.open("wb") as log:
        server = subprocess.Popen(
            [*command, "org.gaul.s3proxy.Main", "--properties", f"{folder}/s3proxy.conf"], stdout=log, stderr=log
        )
    try:
        wait_for(port, server, found.log)
        yield found
    finally:
        server.terminate()
        server.wait(30)


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until the server listens. Fails if it has ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert server.poll() is None, f"the server ended:\n{log.read_text()}"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server does not answer")
