"""Secrets of sources: dbt writes settings to ``target/``, so they name variables, and no value shows anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.secrets import literal_secrets, without
from tests.dbt.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "tr0ub4dor-and-three"
SOURCES = """
version: 2
sources:
  - name: shop
    schema: {schema}raw
    tables:
      - name: events
        columns: [{{name: k, data_type: int}}]
        config: {{meta: {{differential: {{envelope: append, path: data, format: json,
                                          options: {{password: {value}}}}}}}}}
      - name: orders
        config: {{meta: {{differential: {{connector: postgres, options: {{url: {url}}}}}}}}}
"""


def written_with(folder: Path, text: str) -> list[str]:
    """The files below the folder that contain the text."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files if text.encode() in path.read_bytes())


def shop(folder: Path, value: str, url: str) -> Project:
    """A model on each of two sources whose options are secrets; the database cannot be reached."""
    project = Project(folder)
    project.write("models/sources.yml", SOURCES.format(schema=project.schema, value=value, url=url))
    project.write("models/sums.sql", "select k, count(*) as n from {{ source('shop', 'events') }} group by k")
    project.write("models/sold.sql", "select * from {{ source('shop', 'orders') }}")
    project.records("data/1.json", [{"k": 1}])
    return project


def test_a_secret_that_is_named_is_written_nowhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    monkeypatch.setenv("SHOP_URL", f"postgresql://shop:{SECRET}@127.0.0.1:1/shop")
    project = shop(tmp_path, "{env_var: SHOP_PASSWORD}", "{env_var: SHOP_URL}")
    project.dbt("parse")
    project.dbt("compile")
    messages = project.dbt("run", fails=True)
    assert "cannot be reached" in messages["sold"] and SECRET not in messages["sold"]
    assert "initial" in messages["sums"]
    assert (tmp_path / "target" / "manifest.json").exists() and (tmp_path / "logs" / "dbt.log").exists()
    assert written_with(tmp_path, SECRET) == []
    assert "holds a secret" not in (tmp_path / "logs" / "dbt.log").read_text()
    monkeypatch.delenv("SHOP_PASSWORD")
    assert "SHOP_PASSWORD, which is not set" in project.dbt("run", "--select", "sums", fails=True)["sums"]


def test_a_secret_that_is_written_out_is_warned_of(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    monkeypatch.setenv("DBT_ENV_SECRET_SHOP", SECRET)
    project = shop(tmp_path, "\"{{ env_var('DBT_ENV_SECRET_SHOP') }}\"", "postgresql://127.0.0.1:1/shop")
    project.dbt("parse", fails=True)
    assert "Secret env vars are allowed only in profiles.yml" in str(project.last.exception)
    monkeypatch.delenv("DBT_ENV_SECRET_SHOP")
    project = shop(tmp_path, "\"{{ env_var('SHOP_PASSWORD') }}\"", "postgresql://127.0.0.1:1/shop")
    project.dbt("run", "--select", "sums")
    assert "target/manifest.json" in written_with(tmp_path, SECRET)
    log = (tmp_path / "logs" / "dbt.log").read_text()
    assert "options.password holds a secret" in log and "password: {env_var: NAME}" in log


def test_which_options_are_secrets() -> None:
    found = literal_secrets(
        {
            "sasl.password": "x",
            "schema.registry.basic.auth.user.info": "a:b",
            "kafka.sasl.jaas.config": "x",
            "url": "postgresql://a:b@host/db",
            "sasl.username": "x",
            "bootstrap.servers": "host:9092",
            "kafka.ssl.truststore.location": "x",
            "ssl.key.password": {"env_var": "X"},
            "header": True,
            "address": "postgresql://a@host/db",
        }
    )
    assert found == ("sasl.password", "schema.registry.basic.auth.user.info", "kafka.sasl.jaas.config", "url")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "x") for name in ("Pass", "db.pwd", "ssl.keystore.key", "fs.s3a.secret.key", "account_key")),
        ("url", "host=h user=me password=x"),
        ("url", "host=h password = 'x y' user=me"),
        ("connection", "postgresql://me@host/db?sslmode=require&password=x"),
        ("endpoint", "https://host/feed?access_token=x"),
    ],
)
def test_secrets_of_other_spellings(name: str, value: str) -> None:
    assert literal_secrets({name: value}) == (name,)


@pytest.mark.parametrize(
    ("name", "value"),
    [("passive", "x"), ("key", "id"), ("mode", "bypass"), ("url", "host=h user=password_less"), ("pwd.location", "/x")],
)
def test_what_is_no_secret(name: str, value: str) -> None:
    assert literal_secrets({name: value}) == ()


def test_a_password_in_a_connection_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_URL", "host=h user=me password='p ss'")
    spec = parse_source("s.t", "s.t", {"connector": "postgres", "options": {"url": {"env_var": "A_URL"}}}, {}, "/")
    shown = without(spec.secrets, SourceError("refused: p ss for me"))
    assert shown is not None and str(shown) == "refused: *** for me"


def test_no_error_shows_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_URL", "https://me:p%40ss@host")
    meta = {"connector": "kafka", "envelope": "append", "options": {"bootstrap.servers": {"env_var": "A_URL"}}}
    spec = parse_source("s.t", "s.t", meta, {}, "/")
    assert "p%40ss" not in repr(spec)
    caused = SourceError("refused", "Look.")
    caused.__cause__ = ValueError("bad password p@ss")
    hidden = without(spec.secrets, caused)
    assert hidden is not None and hidden.__cause__ is None and str(hidden) == str(caused)
    shown = without(spec.secrets, SourceError("cannot reach https://me:p%40ss@host", "Check p@ss."))
    assert shown is not None and str(shown) == "cannot reach ***\n  Check ***."
    assert without(spec.secrets, SourceError("refused")) is None


@pytest.mark.parametrize("value", [{"env": "X"}, {"env_var": None}, {}, {"env_var": "X", "default": "y"}])
def test_what_names_no_variable_is_refused(value: object) -> None:
    with pytest.raises(ConfigError, match=r"options\.password is neither"):
        parse_source("s.t", "s.t", {"path": "x", "format": "csv", "options": {"password": value}}, {}, "/")
