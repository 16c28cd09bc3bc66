"""State roots in object storage: one set of options, with delta-rs's names, for delta-rs, pyarrow and Spark.

Missing options come from environment variables of the same names, as in delta-rs. For stores other than S3, pyarrow and
Spark use their own environment and settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from pyarrow import fs as pafs

from dbt_incremental_dd.core.errors import ConfigError

_S3 = ("s3", "s3a")
_GCS = ("gs",)
_KEY, _SECRET, _TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_ENDPOINT, _REGION = "AWS_ENDPOINT_URL", "AWS_REGION"
_OTHER_NAMES = {"AWS_ENDPOINT": _ENDPOINT, "AWS_DEFAULT_REGION": _REGION, "AWS_TOKEN": _TOKEN}
_UNSAFE = "AWS_S3_ALLOW_UNSAFE_RENAME"
MISSING_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
"""Named by Spark's error if hadoop-aws is missing."""


def is_remote(uri: str) -> bool:
    """Whether a path is in object storage."""
    return "://" in uri


def filesystem_of(uri: str, options: Mapping[str, str]) -> tuple[pafs.FileSystem, str]:
    """pyarrow's file system for a URI, and the path within it."""
    if not is_remote(uri):
        return pafs.LocalFileSystem(), uri
    parts = urlsplit(uri)
    if parts.scheme in _S3:
        return _s3(tuple(sorted(_of_s3(options).items()))), f"{parts.netloc}{parts.path}".rstrip("/")
    filesystem, path = pafs.FileSystem.from_uri(uri)
    return filesystem, path


def make_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Creates a folder and its parents; object storage has no folders."""
    if not isinstance(filesystem, pafs.S3FileSystem):
        filesystem.create_dir(path, recursive=True)


def spark_uri(uri: str) -> str:
    """The path for Spark, whose file system for S3 has the scheme ``s3a``."""
    return f"s3a://{uri.removeprefix('s3://')}" if uri.startswith("s3://") else uri


def hadoop_settings(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's settings that correspond to the options."""
    if not is_remote(root) or urlsplit(root).scheme not in _S3:
        return {}
    settings = _of_s3(options)
    endpoint = settings.get(_ENDPOINT)
    found = {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": settings.get(_REGION),
        "fs.s3a.access.key": settings.get(_KEY),
        "fs.s3a.secret.key": settings.get(_SECRET),
        "fs.s3a.session.token": settings.get(_TOKEN),
        "fs.s3a.path.style.access": "true" if endpoint and not _is_virtual(settings) else None,
        "fs.s3a.connection.ssl.enabled": "false" if endpoint and endpoint.startswith("http://") else None,
    }
    return {name: value for name, value in found.items() if value}


def require_safe(root: str, options: Mapping[str, str]) -> None:
    """Raises ConfigError if the options allow concurrent commits to overwrite each other."""
    if is_remote(root) and _is_true(_of_s3(options).get(_UNSAFE)):
        raise ConfigError(
            f"{_UNSAFE} lets two runs overwrite each other's commits",
            "Leave it out of storage_options and the environment: commits are conditional writes, which need no lock.",
        )


def canonical(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options for a URI under canonical names, completed by environment variables of its store."""
    scheme = urlsplit(uri).scheme
    if scheme in _S3:
        return _of_s3(options)
    prefix = "GOOGLE_" if scheme in _GCS else "AZURE_"
    return {**{name: value for name, value in os.environ.items() if name.startswith(prefix)}, **options}


def _of_s3(options: Mapping[str, str]) -> dict[str, str]:
    """The options under canonical names, completed by environment variables."""
    found: dict[str, str] = {}
    for source in (os.environ, options):
        for name, value in source.items():
            upper = name.upper()
            upper = upper if upper.startswith("AWS_") or source is os.environ else f"AWS_{upper}"
            if upper.startswith("AWS_"):
                found[_OTHER_NAMES.get(upper, upper)] = str(value)
    return found


@lru_cache(maxsize=16)
def _s3(canonical: tuple[tuple[str, str], ...]) -> pafs.S3FileSystem:
    """One file system for all uses of the same options, because it keeps connections."""
    settings = dict(canonical)
    endpoint = settings.get(_ENDPOINT)
    return pafs.S3FileSystem(
        access_key=settings.get(_KEY),
        secret_key=settings.get(_SECRET),
        session_token=settings.get(_TOKEN),
        region=settings.get(_REGION),
        endpoint_override=endpoint,
        force_virtual_addressing=_is_virtual(settings),
        allow_delayed_open=True,  # writes small files with one request
    )


def _is_virtual(settings: Mapping[str, str]) -> bool:
    return _is_true(settings.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST"))


def _is_true(value: str | None) -> bool:
    return str(value).lower() in ("1", "true", "yes", "on", "t", "y", "ok")
