"""Settings of sources that are tables of PostgreSQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.envelopes.envelope import Envelope
from dbt_incremental_dd.sources.envelopes.replica import REPLICA
from dbt_incremental_dd.sources.setting import setting, text
from dbt_incremental_dd.sources.spec import SourceSpec

_SLOT = re.compile(r"[a-z0-9_]{0,63}")
_OPTIONS = ("url", "slot", "publication")


@dataclass(frozen=True, kw_only=True)
class PostgresSpec(SourceSpec):
    """``table``: by default the source's own schema and identifier. What identifies its rows the table says itself."""

    connector: ClassVar[str] = "postgres"
    reads: ClassVar[str] = "a table with the key that it has"
    implied_envelope: ClassVar[Envelope | None] = REPLICA
    envelope_settings: ClassVar[tuple[str, ...]] = ()

    table: str | None = setting(text)

    @property
    def uri(self) -> str:
        """By the first of the hosts, as ``postgres://host:port/database.schema.table``."""
        url = urlsplit(self.options["url"])
        host, _, port = url.netloc.rpartition("@")[2].split(",")[0].partition(":")
        database = unquote(url.path.strip("/")) or url.username or "postgres"
        table = (self.table or ".".join(self.relation.split(".")[-2:])).replace("`", "").replace('"', "")
        qualified = table if "." in table else f"public.{table}"
        return f"postgres://{host or 'localhost'}:{port or 5432}/{database}.{qualified}"

    def check(self) -> None:
        """Raises ConfigError for wrong options."""
        unknown = [name for name in self.options if name not in _OPTIONS]
        if unknown or not self.options.get("url"):
            wrong = f"unknown option {unknown[0]}" if unknown else "connector postgres needs a url"
            raise ConfigError(
                f"source {self.name}: {wrong}",
                f"Under options there may be {', '.join(_OPTIONS)}; url: {{env_var: POSTGRES_URL}}.",
            )
        slot = self.options.get("slot", "")
        if not _SLOT.fullmatch(slot):
            raise ConfigError(
                f"source {self.name}: options.slot is {slot!r}",
                "It may have lower case letters, digits and underscores, at most 63.",
            )
