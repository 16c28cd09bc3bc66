"""Settings of sources that are tables of MariaDB or MySQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.connectors.mysql.connection import Address
from dbt_incremental_dd.sources.envelopes.envelope import Envelope
from dbt_incremental_dd.sources.envelopes.replica import REPLICA
from dbt_incremental_dd.sources.setting import setting, text
from dbt_incremental_dd.sources.spec import SourceSpec

_NEEDED = ("host", "user")
_OPTIONS = ("host", "port", "user", "password", "database", "ssl_ca")


@dataclass(frozen=True, kw_only=True)
class MysqlSpec(SourceSpec):
    """``table``: by default the source's own identifier. What identifies its rows the table says itself."""

    connector: ClassVar[str] = "mysql"
    reads: ClassVar[str] = "a table with the key that it has"
    implied_envelope: ClassVar[Envelope | None] = REPLICA
    envelope_settings: ClassVar[tuple[str, ...]] = ()

    table: str | None = setting(text)

    @property
    def address(self) -> Address:
        """The server."""
        given = self.options
        port = int(given.get("port", 3306))
        return Address(given["host"], port, given["user"], given.get("password", ""), given.get("ssl_ca"))

    @property
    def table_name(self) -> tuple[str, str]:
        """Database and table: ``table``, which may be ``database.table``, or the source's own schema and identifier."""
        own = [part.replace("``", "`") for part in self.relation.strip("`").replace("`.`", "\0").split("\0")]
        own = own if len(own) > 1 else self.relation.replace("`", "").split(".")
        database = self.options.get("database", own[-2] if len(own) > 1 else "")
        if self.table is None:
            return database, own[-1]
        before, _, name = self.table.rpartition(".")
        return before or database, name

    @property
    def uri(self) -> str:
        """As ``mysql://host:port/database.table``."""
        address = self.address
        return f"mysql://{address.host}:{address.port}/{'.'.join(self.table_name)}"

    def check(self) -> None:
        """Raises ConfigError for wrong options."""
        unknown = next((name for name in self.options if name not in _OPTIONS), None)
        missing = next((name for name in _NEEDED if not self.options.get(name)), None)
        port = self.options.get("port", "3306")
        if unknown or missing or not (port.isascii() and port.isdigit()):
            wrong = f"connector mysql needs a {missing}" if missing else f"options.port is {port!r}"
            raise ConfigError(
                f"source {self.name}: {f'unknown option {unknown}' if unknown else wrong}",
                f"Under options there may be {', '.join(_OPTIONS)}; password: {{env_var: MYSQL_PASSWORD}}.",
            )
