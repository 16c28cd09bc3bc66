"""Tables of a MariaDB or MySQL server as sources, taken in by runs, compared with the server's own rows."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

from dbt_incremental_dd.relation.lazy_session import LazySession
from tests.feeds.database import DatabaseFeed, plain
from tests.servers.binlog_server import BinlogServer

_NUMBERS = itertools.count()
_SEQUENCE = re.compile(r"\bseq_(\d+)_to_(\d+)\b")
_COUNTED = (
    r"(WITH RECURSIVE s (seq) AS (SELECT \1 UNION ALL SELECT seq + 1 FROM s WHERE seq < \2) SELECT * FROM s) AS numbers"
)


class Feed(DatabaseFeed):
    """A database of its own, and a state root that follows tables of it."""

    connector = "mysql"

    def __init__(self, session: LazySession, server: BinlogServer, folder: Path) -> None:
        super().__init__(session, folder)
        self.server = server
        self.schema = self.database = f"d{next(_NUMBERS)}"
        self.options = {"host": server.host, "port": server.port, "user": "root"}
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4")
        self.connection = self.connect()

    def connect(self, **options: Any) -> Any:
        """One more connection, in autocommit mode."""
        given = {"database": self.database, "charset": "utf8mb4", "init_command": "SET time_zone = '+00:00'"}
        if not self.is_mariadb:
            given["init_command"] += ", cte_max_recursion_depth = 1000000"
        return self.server.connect(**given, **options)

    @property
    def is_mariadb(self) -> bool:
        """Or MySQL."""
        return self.server.kind == "mariadb"

    def either(self, mariadb: str, mysql: str) -> str:
        """What is for the kind of server that this is."""
        return mariadb if self.is_mariadb else mysql

    def sql(self, *statements: str) -> None:
        """Statements, one after the other. MariaDB's tables of numbers, as ``seq_1_to_10``, are everywhere."""
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement if self.is_mariadb else _SEQUENCE.sub(_COUNTED, statement))

    def query(self, text: str) -> list[tuple[Any, ...]]:
        """Its rows."""
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return [tuple(row) for row in cursor.fetchall()]

    def actual(self, name: str, columns: str = "*") -> Counter[tuple[Any, ...]]:
        return Counter(tuple(map(plain, row)) for row in self.query(f"SELECT {columns} FROM `{name}`"))

    def close(self) -> None:
        """Drops the database."""
        self.sql(f"DROP DATABASE {self.database}")
        self.connection.close()
