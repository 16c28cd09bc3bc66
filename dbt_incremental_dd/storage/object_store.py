"""State roots in object storage: one set of options, with delta-rs's names, for delta-rs, for pyarrow and for Spark.

What is not given is taken from the environment, under the same names, as delta-rs does. Other stores than S3 are
reached by pyarrow and Spark with what their own environment and settings say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import ConfigError

_S3 = ("s3", "s3a")
_KEY, _SECRET, _TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_ENDPOINT, _REGION = "AWS_ENDPOINT_URL", "AWS_REGION"
_OTHER_NAMES = {"AWS_ENDPOINT": _ENDPOINT, "AWS_DEFAULT_REGION": _REGION, "AWS_TOKEN": _TOKEN}
_UNSAFE = "AWS_S3_ALLOW_UNSAFE_RENAME"
MISSING_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
"""What Spark names where it has no hadoop-aws."""


def is_remote(uri: str) -> bool:
    """Whether a path is one of a store, and not of a local disk."""
    return "://" in uri


def filesystem_of(uri: str, options: Mapping[str, str]) -> tuple[pafs.FileSystem, str]:
    """pyarrow's file system for a path, and the path in its terms."""
    if not is_remote(uri):
        return pafs.LocalFileSystem(), uri
    parts = urlsplit(uri)
    if parts.scheme in _S3:
        return _s3(tuple(sorted(_settled(options).items()))), f"{parts.netloc}{parts.path}".rstrip("/")
    filesystem, path = pafs.FileSystem.from_uri(uri)
    return filesystem, path


def make_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Makes a folder with those above it; object storage has none."""
    if not isinstance(filesystem, pafs.S3FileSystem):
        filesystem.create_dir(path, recursive=True)


def spark_uri(uri: str) -> str:
    """The path as Spark has it: Hadoop's file system for S3 has a scheme of its own."""
    return f"s3a://{uri.removeprefix('s3://')}" if uri.startswith("s3://") else uri


def hadoop_settings(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's settings for what the options say, as far as they say anything."""
    if not is_remote(root) or urlsplit(root).scheme not in _S3:
        return {}
    given = _settled(options)
    endpoint = given.get(_ENDPOINT)
    found = {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": given.get(_REGION),
        "fs.s3a.access.key": given.get(_KEY),
        "fs.s3a.secret.key": given.get(_SECRET),
        "fs.s3a.session.token": given.get(_TOKEN),
        "fs.s3a.path.style.access": "true" if endpoint and not _is_virtual(given) else None,
        "fs.s3a.connection.ssl.enabled": "false" if endpoint and endpoint.startswith("http://") else None,
    }
    return {name: value for name, value in found.items() if value}


def require_safe(root: str, options: Mapping[str, str]) -> None:
    """Raises ConfigError if the options let one of two commits get lost."""
    if is_remote(root) and _is_true(_settled(options).get(_UNSAFE)):
        raise ConfigError(
            f"{_UNSAFE} lets two runs overwrite each other's commits",
            "Leave it out of storage_options and the environment: commits are conditional writes, which need no lock.",
        )


def _settled(options: Mapping[str, str]) -> dict[str, str]:
    """The options under one name each, with those of the environment beneath."""
    found: dict[str, str] = {}
    for source in (os.environ, options):
        for name, value in source.items():
            upper = name.upper()
            upper = upper if upper.startswith("AWS_") or source is os.environ else f"AWS_{upper}"
            if upper.startswith("AWS_"):
                found[_OTHER_NAMES.get(upper, upper)] = str(value)
    return found


@lru_cache(maxsize=16)
def _s3(settled: tuple[tuple[str, str], ...]) -> pafs.S3FileSystem:
    """One for all that have the same options: it keeps connections."""
    given = dict(settled)
    endpoint = given.get(_ENDPOINT)
    return pafs.S3FileSystem(
        access_key=given.get(_KEY),
        secret_key=given.get(_SECRET),
        session_token=given.get(_TOKEN),
        region=given.get(_REGION),
        endpoint_override=endpoint,
        force_virtual_addressing=_is_virtual(given),
        allow_delayed_open=True,  # small files are written by one request
    )


def _is_virtual(given: Mapping[str, str]) -> bool:
    return _is_true(given.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"))


def _is_true(value: str | None) -> bool:
    return str(value).lower() in ("1", "true", "yes", "on", "t", "y", "ok")
