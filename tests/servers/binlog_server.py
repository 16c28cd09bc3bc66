"""A server of MariaDB or MySQL that writes a binary log, run by an unprivileged user."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.servers.postgres import free_port

_USER = "nobody"
_SECONDS = 60.0


class BinlogServer(ABC):
    """A server with its data in a folder of its own; ``start`` and ``kill`` it as often as needed, ``stop`` it at the
    end. ``settings``: system variables."""

    host = "127.0.0.1"
    kind: str

    def __init__(self, **settings: Any) -> None:
        self.port = free_port()
        self.folder = folder = Path(tempfile.mkdtemp(prefix=f"dd_{self.kind}_"))
        self.data = folder / "data"
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._settings: dict[str, Any] = {
            "datadir": self.data,
            "tmpdir": folder,
            "port": self.port,
            "bind_address": self.host,
            "socket": folder / "socket",
            "pid_file": folder / "pid",
            "log_bin": "binlog",
            "server_id": 1,
            "innodb_buffer_pool_size": "16M",
            "innodb_flush_log_at_trx_commit": 2,
            "skip_name_resolve": "ON",
            "performance_schema": "OFF",
            **self.defaults,
            **settings,
        }
        self.as_user = ["--user=" + _USER] if os.getuid() == 0 else []
        if os.getuid() == 0:
            shutil.chown(folder, _USER)
        done = subprocess.run(self.install_command(), capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    @abstractmethod
    def command(self) -> Sequence[str]:
        """What starts the program, without settings."""

    @property
    @abstractmethod
    def defaults(self) -> Mapping[str, Any]:
        """Settings that the other kind of server does not have, or has otherwise."""

    @abstractmethod
    def install_command(self) -> Sequence[str]:
        """What fills the folder of data."""

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        given = [f"--{name.replace('_', '-')}={value}" for name, value in self._settings.items() if value is not None]
        with self._log.open("ab") as log:
            command = [*self.command, "--no-defaults", *self.as_user, *given]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + _SECONDS
        while not self._answers():
            assert self._process.poll() is None and time.monotonic() < deadline, self._log.read_text()[-2000:]
            time.sleep(0.05)

    def kill(self) -> None:
        """Ends it as by SIGKILL."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Ends it in order, and starts it."""
        self._end(signal.SIGTERM)
        self.start()

    def stop(self) -> None:
        """Ends it, and removes its data."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder)

    def connect(self, **options: Any) -> Any:
        """A connection as root, in autocommit mode."""
        import pymysql

        given = {"host": self.host, "port": self.port, "user": "root", "autocommit": True, **options}
        return pymysql.connect(**given)

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait()

    def _answers(self) -> bool:
        import pymysql

        try:
            self.connect(connect_timeout=2).close()
        except pymysql.MySQLError:
            return False
        return True
