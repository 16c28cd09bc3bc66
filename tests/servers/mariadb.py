"""A MariaDB server, of the packages that are installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from tests.servers.binlog_server import BinlogServer


class MariaDB(BinlogServer):
    """MariaDB."""

    kind = "mariadb"

    @staticmethod
    def missing() -> str | None:
        """Why there is none here; None where there is one."""
        return None if _program() else "there is no MariaDB server: apt-get install mariadb-server-core"

    @property
    def command(self) -> Sequence[str]:
        found = _program()
        assert found is not None, self.missing()
        return [found]

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {"binlog_format": "ROW", "innodb_log_file_size": "8M"}

    def install_command(self) -> Sequence[str]:
        return [
            "mariadb-install-db",
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            f"--datadir={self.data}",
            *self.as_user,
        ]


def _program() -> str | None:
    return shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
