"""The connectors, by the names that the setting ``connector`` has for them: an import and a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_incremental_dd.sources.connectors.connector import Connector
from dbt_incremental_dd.sources.connectors.files import connector as files
from dbt_incremental_dd.sources.connectors.http import connector as http
from dbt_incremental_dd.sources.connectors.kafka import connector as kafka
from dbt_incremental_dd.sources.connectors.lake import delta, iceberg
from dbt_incremental_dd.sources.connectors.mysql import connector as mysql
from dbt_incremental_dd.sources.connectors.postgres import connector as postgres
from dbt_incremental_dd.sources.connectors.table import connector as table
from dbt_incremental_dd.sources.spec import SourceSpec

_ALL: tuple[Connector[Any], ...] = (
    files,
    delta,
    iceberg,
    table,
    kafka,
    postgres,
    mysql,
    http,
)
CONNECTORS: Mapping[str, Connector[Any]] = {connector.SPEC.connector: connector for connector in _ALL}


def connector_of(spec: SourceSpec) -> Connector[Any]:
    """The source's connector."""
    return CONNECTORS[spec.connector]
