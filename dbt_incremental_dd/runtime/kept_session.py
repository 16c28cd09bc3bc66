"""A local session that outlives the process that needs it, for ``keep_session``: Spark Connect in a JVM of a keeper.

``kept-session.json`` in the local folder says how to reach it. Whoever uses it has a shared lock on that file, so one
that is killed does not count any more. A session whose file is gone takes nobody else in, and ends with its last user:
removing the file is how to end it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from dbt_incremental_dd.core import file_lock
from dbt_incremental_dd.core.errors import SessionError, StateError
from dbt_incremental_dd.runtime.metastore import LONGEST_WAIT, until_free
from dbt_incremental_dd.version import version

if sys.platform != "win32":
    import fcntl

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "HIVE_", "JAVA_", "JDK_", "PYSPARK_", "SPARK_", "YARN_")
"""What a JVM takes from its environment: one that was started with others is another one."""
_used: dict[str, int] = {}
"""Descriptors with this process's locks, by path."""


@dataclass(frozen=True)
class KeptSession:
    """Where it listens on this machine; the secret that it asks for; its configuration; its keeper's process id."""

    port: int
    token: str
    configuration: str
    keeper: int

    @staticmethod
    def of(text: str) -> KeptSession | None:
        """The one that a file's text describes; None if it describes none."""
        try:
            found = json.loads(text)
            return KeptSession(
                int(found["port"]), str(found["token"]), str(found["configuration"]), int(found["keeper"])
            )
        except (ValueError, TypeError, KeyError):
            return None

    @property
    def url(self) -> str:
        """As Spark Connect's clients expect it. They send the secret without TLS to this host only, by this name."""
        return f"sc://localhost:{self.port}"

    @property
    def is_listening(self) -> bool:
        """Whether anybody answers there."""
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@dataclass(frozen=True)
class Wanted:
    """What a keeper opens: ``open_session``'s arguments, and the seconds that it stays without users. ``folder``: a
    local one."""

    folder: str
    root: str
    settings: Mapping[str, str]
    options: Mapping[str, str]
    seconds: float
    metastore: str | None
    configuration: str


def file_of(folder: str) -> str:
    """The path of the file that says how to reach the session."""
    return f"{folder}/kept-session.json"


def configuration_of(configuration: Mapping[str, object], seconds: float) -> str:
    """Tells sessions apart that differ in what Spark is given, in environment, Python or version of this package."""
    environment = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES) and name != TOKEN}
    text = json.dumps([configuration, environment, sys.executable, version, seconds], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def join(wanted: Wanted, tell: Callable[[str], None]) -> KeptSession:
    """The session that is there, or a new one; in use until this process ends. Raises SessionError if Spark does not
    start, StateError if another process has the metastore for too long."""
    path = file_of(wanted.folder)
    found = _joined(path, wanted.configuration)
    if found is not None:
        return found

    def waiting(holder: str) -> None:
        tell(f"waiting for process {holder}, which starts a session to be kept")

    try:
        starting = file_lock.acquire(f"{path}.lock", LONGEST_WAIT, waiting, lambda: True)
    except TimeoutError as error:
        raise StateError(f"process {error} has been starting a session for very long", "End that process.") from error
    try:
        found = _joined(path, wanted.configuration)
        if found is None:
            let_go(wanted.folder)
            if wanted.metastore is not None:
                until_free(wanted.metastore, tell)
            _start(wanted)
            found = _joined(path, wanted.configuration)
    finally:
        os.close(starting)
    if found is None:
        raise SessionError(f"the session that was to be kept has ended. See {wanted.folder}/spark.log.")
    return found


def let_go(folder: str) -> KeptSession | None:
    """Ends the session of a folder as soon as nobody uses it; the one that was there."""
    found = _read(file_of(folder))
    with suppress(FileNotFoundError):
        os.unlink(file_of(folder))
    return found


def write(path: str, session: KeptSession) -> int:
    """Makes it known to processes of this user. Returns a descriptor of the file."""
    written = f"{path}.{os.getpid()}"
    descriptor = os.open(written, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(descriptor, json.dumps(asdict(session)).encode())
    os.replace(written, path)
    return descriptor


def is_same_file(descriptor: int, path: str) -> bool:
    """Whether the file that was opened is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _joined(path: str, configuration: str) -> KeptSession | None:
    """The session, if it is of that configuration and there: it cannot end from now on."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    found = _read(path)
    is_usable = found is not None and found.configuration == configuration and found.is_listening
    if is_usable and is_same_file(descriptor, path):
        _used[path] = descriptor
        return found
    os.close(descriptor)
    return None


def _read(path: str) -> KeptSession | None:
    try:
        return KeptSession.of(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def _start(wanted: Wanted) -> None:
    """Returns when the keeper's session can be reached. Raises SessionError with what Spark says."""
    environment = {name: value for name, value in os.environ.items() if name != TOKEN}
    with open(f"{wanted.folder}/spark.log", "ab") as log:
        done = subprocess.run(
            [sys.executable, "-m", "dbt_incremental_dd.runtime.keeper"],
            input=json.dumps(asdict(wanted)),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            start_new_session=True,
            check=False,
        )
    if done.returncode:
        raise SessionError(done.stdout.strip() or f"Spark did not start. See the end of {wanted.folder}/spark.log.")
