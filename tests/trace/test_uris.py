"""One set of options, under delta-rs's names, for everybody who reads and writes the state root."""

from __future__ import annotations

import pytest
from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.storage.filesystems import filesystem_of
from dbt_incremental_dd.storage.uris import hadoop_settings, missing_package, require_safe, spark_uri
from dbt_incremental_dd.trace.layout import Storage

OPTIONS = {
    "AWS_ENDPOINT_URL": "http://store:9000",
    "AWS_ACCESS_KEY_ID": "an-identity",
    "AWS_SECRET_ACCESS_KEY": "a-credential",
    "AWS_REGION": "eu-west-1",
    "AWS_ALLOW_HTTP": "true",
}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*OPTIONS, "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT", "AZURE_CLIENT_ID"):
        monkeypatch.delenv(name, raising=False)


def test_what_spark_is_told() -> None:
    assert hadoop_settings("s3://bucket/state", OPTIONS) == {
        "fs.s3a.endpoint": "http://store:9000",
        "fs.s3a.endpoint.region": "eu-west-1",
        "fs.s3a.access.key": "an-identity",
        "fs.s3a.secret.key": "a-credential",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    assert hadoop_settings("s3://bucket", {"region": "eu-west-1"}) == {"fs.s3a.endpoint.region": "eu-west-1"}
    assert hadoop_settings("/a/folder", OPTIONS) == hadoop_settings("gs://bucket", OPTIONS) == {}


def test_what_spark_is_told_of_other_stores() -> None:
    assert hadoop_settings("gs://bucket", {"service_account": "/a/key.json"}) == {
        "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
        "fs.gs.auth.service.account.json.keyfile": "/a/key.json",
    }
    host = "acc.dfs.core.windows.net"
    root = f"abfss://box@{host}/state"
    assert hadoop_settings(root, {"azure_storage_access_key": "k"}) == {
        f"fs.azure.account.auth.type.{host}": "SharedKey",
        f"fs.azure.account.key.{host}": "k",
    }
    assert hadoop_settings(root, {"AZURE_STORAGE_SAS_KEY": "?sv=1"}) == {
        f"fs.azure.account.auth.type.{host}": "SAS",
        f"fs.azure.sas.fixed.token.{host}": "sv=1",
    }
    principal = hadoop_settings(root, {"client_id": "i", "client_secret": "s", "tenant_id": "t"})
    assert principal[f"fs.azure.account.auth.type.{host}"] == "OAuth"
    assert principal[f"fs.azure.account.oauth2.client.endpoint.{host}"].endswith("/t/oauth2/token")


def test_what_is_missing_of_spark() -> None:
    error = "ClassNotFoundException: Class org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem not found"
    found = missing_package("abfss://box@acc.dfs.core.windows.net", error)
    assert found is not None and found[1] == "org.apache.hadoop:hadoop-azure"
    assert missing_package("s3://bucket", error) is None
    assert missing_package("/a/folder", error) is None


def test_names_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the environment")
    monkeypatch.setenv("REGION", "of somebody else")
    given = {"aws_endpoint": "https://store", "token": "of the profile", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}
    assert hadoop_settings("s3a://bucket", given) == {
        "fs.s3a.endpoint": "https://store",
        "fs.s3a.endpoint.region": "us-west-2",
        "fs.s3a.session.token": "of the profile",
    }


def test_paths() -> None:
    assert spark_uri("s3://bucket/a b") == "s3a://bucket/a b"
    assert [spark_uri(path) for path in ("/a/s3://b", "s3a://b", "gs://b")] == ["/a/s3://b", "s3a://b", "gs://b"]
    filesystem, path = filesystem_of("s3://bucket/state/x", OPTIONS)
    assert isinstance(filesystem, pafs.S3FileSystem)
    assert path == "bucket/state/x"
    assert filesystem_of("s3://bucket", dict(OPTIONS))[0] is filesystem, "connections are kept"
    assert filesystem_of("/a/folder", OPTIONS) == (pafs.LocalFileSystem(), "/a/folder")


def test_what_would_lose_commits_is_refused() -> None:
    require_safe("s3://bucket", OPTIONS)
    with pytest.raises(ConfigError, match="overwrite each other's commits"):
        require_safe("s3://bucket", {**OPTIONS, "AWS_S3_ALLOW_UNSAFE_RENAME": "true"})


def test_what_spark_does_not_know_is_refused() -> None:
    require_safe("abfss://box@acc.dfs.core.windows.net/state", {})
    for root in ("az://box/state", "abfss://box/state", "wasbs://box@acc.blob.core.windows.net"):
        with pytest.raises(ConfigError, match="Spark does not know"):
            require_safe(root, {})
    require_safe("gs://bucket", {"google_service_account": "/a/key.json", "google_service_account_key": "{}"})
    with pytest.raises(ConfigError, match="text of a service account's key"):
        require_safe("gs://bucket", {"google_service_account_key": "{}"})


def test_options_are_not_shown() -> None:
    assert "a-credential" not in repr(Storage("s3://bucket", OPTIONS))
