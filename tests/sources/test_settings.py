"""A source's settings, by connector and envelope; without Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.connectors.registry import CONNECTORS
from dbt_incremental_dd.sources.envelopes.registry import ENVELOPES
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings

OPTIONS = {
    "kafka": {"bootstrap.servers": "x"},
    "mysql": {"host": "h", "user": "u"},
    "postgres": {"url": "postgresql://h/d"},
}
LEAST: dict[str, dict[str, Any]] = {
    "files": {"path": "in", "format": "json"},
    "delta": {"path": "in", "format": "delta"},
    "iceberg": {"connector": "iceberg"},
    "table": {},
    "kafka": {"connector": "kafka", "envelope": "append", "options": OPTIONS["kafka"]},
    "mysql": {"connector": "mysql", "options": OPTIONS["mysql"]},
    "postgres": {"connector": "postgres", "options": OPTIONS["postgres"]},
    "http": {"connector": "http", "envelope": "append"},
}
"""The fewest settings of each connector."""
COLUMNS: dict[str, dict[str, str | None]] = {"http": {"k": "bigint"}}
"""The fewest columns, of a connector that needs some."""


@pytest.mark.parametrize("connector", LEAST)
def test_the_fewest_settings(connector: str) -> None:
    spec = parse_source("s.t", "s.t", LEAST[connector], COLUMNS.get(connector, {}), "/p")
    assert (spec.connector, spec.location) == (connector, "/p/in" if "path" in LEAST[connector] else None)
    others = {"kafka": "append", "http": "append", "mysql": "replica", "postgres": "replica"}
    assert str(spec.envelope) == others.get(connector, "snapshot")


@pytest.mark.parametrize("connector", LEAST)
def test_what_another_connector_reads_is_refused_by_name(connector: str) -> None:
    """Every setting is one of the connector's, or an error that names the source, the setting and who knows it."""
    own = {"connector", *CONNECTORS[connector].SPEC.known_settings()}
    others = {key for module in CONNECTORS.values() for key in module.SPEC.known_settings()} - own
    assert others
    columns = COLUMNS.get(connector, {})
    for key in others:
        # A path by itself is a reason to take another connector.
        settings = {**LEAST[connector], "connector": connector, key: "x"}
        message = (
            rf"source s\.t: {key} means nothing to connector {connector}, which reads .*\n.*{key} is for connector"
        )
        with pytest.raises(ConfigError, match=message):
            parse_source("s.t", "s.t", settings, columns, "/p")
        assert parse_source("s.t", "s.t", {**settings, key: None}, columns, "/p").connector == connector


@pytest.mark.parametrize(
    ("wrong", "near"), [("conector", "connector"), ("orderby", "order_by"), ("topics", "topic"), ("tables", "table")]
)
def test_the_nearest_known_setting_is_named(wrong: str, near: str) -> None:
    with pytest.raises(ConfigError, match=rf"source s\.t: unknown setting differential\.{wrong}\n.*mean {near}\?"):
        parse_source("s.t", "s.t", {wrong: "kafka"}, {}, "/p")


def test_the_documented_settings_are_those_that_there_are() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sources.md").read_text().split("\n\n")
    table = next(part for part in text if part.startswith("| key | meaning |"))
    documented = {key for line in table.splitlines()[2:] for key in re.findall(r"`(\w+)`", line.split("|")[1])}
    known = {key for module in CONNECTORS.values() for key in module.SPEC.known_settings()}
    assert documented == {"connector", *known}


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_says_what_it_requires(name: str) -> None:
    needed = ENVELOPES[name].requires
    if needed is None:
        assert name in ("append", "snapshot", "replica")
        return
    for key in needed.any_of:
        assert parse_source("s.t", "s.t", {"envelope": name, key: "k"}, {}, "/p").envelope is ENVELOPES[name]
    with pytest.raises(ConfigError, match=f"envelope {name} needs differential.{needed.any_of[0]}"):
        parse_source("s.t", "s.t", {"envelope": name}, {}, "/p")


def test_settings_spell_columns_as_the_records_do() -> None:
    """Of a changelog the column that says what happens is not among the visible ones."""
    records = Schema((Column("Id", LONG), Column("Op", STRING)))
    settings = EnvelopeSettings(key=("ID", "none"), order_by=("id",), op_column="OP", deleted_when="OP = 'd'")
    visible = ENVELOPES["changelog"].visible_schema(settings, records)
    assert visible.names == ("Id",)
    expected = EnvelopeSettings(key=("Id", "none"), order_by=("Id",), op_column="Op", deleted_when="OP = 'd'")
    assert settings.as_spelt(visible, records) == expected
