"""A MySQL server, of the packages that ``mysql_packages`` fetches: with its own C library, so that the machine's does
not matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.servers.binlog_server import BinlogServer

FOLDER = Path(__file__).parents[2] / ".mysql"
"""Where the packages are extracted."""
_ROOT = "CREATE USER root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"


class MySQL(BinlogServer):
    """MySQL, as its settings are but for memory, and for waiting for the disk."""

    kind = "mysql"
    other_host = "127.0.0.2"
    """Also this machine, but one to which clients use TLS."""

    @staticmethod
    def missing() -> str | None:
        """Why there is none here; None where there is one."""
        return None if (FOLDER / "complete").exists() else "there is no MySQL server: make mysql fetches it on Debian"

    @property
    def command(self) -> Sequence[str]:
        (loader,) = FOLDER.glob("usr/lib/*/ld-linux-*.so.*")
        return [str(loader), "--library-path", str(loader.parent), str(FOLDER / "usr/sbin/mysqld")]

    @property
    def defaults(self) -> Mapping[str, Any]:
        return {
            **_common(),
            "bind_address": f"{self.host},{self.other_host}",
            "sync_binlog": 0,
            "innodb_redo_log_capacity": "32M",
            "mysqlx": "OFF",
            "secure_file_priv": "NULL",
        }

    def install_command(self) -> Sequence[str]:
        statements = self.folder / "root.sql"
        statements.write_text(_ROOT)
        settings = {**_common(), "datadir": self.data, "init_file": statements}
        own = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
        return [*self.command, "--no-defaults", *self.as_user, *own, "--initialize-insecure"]


def _common() -> dict[str, Any]:
    """Settings of every start."""
    share = FOLDER / "usr/share/mysql"
    return {
        "basedir": FOLDER / "usr",
        "lc_messages_dir": share,
        "character_sets_dir": share / "charsets",
    }
