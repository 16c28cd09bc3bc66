"""pyarrow's file systems: the local disk's, its own for S3, and ours for other stores, with the same options."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from pyarrow import fs as pafs

from dbt_incremental_dd.storage.object_files import ObjectFiles
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.storage.stores.s3 import S3
from dbt_incremental_dd.storage.stores.store import is_true
from dbt_incremental_dd.storage.uris import canonical, is_remote


def filesystem_of(uri: str, options: Mapping[str, str]) -> tuple[pafs.FileSystem, str]:
    """pyarrow's file system for a URI, and the path within it."""
    if not is_remote(uri):
        return pafs.LocalFileSystem(), uri
    parts = urlsplit(uri)
    if parts.scheme in S3.schemes:
        made = _s3(tuple(sorted(canonical(uri, options).items())))
    else:
        made = pafs.PyFileSystem(ObjectFiles(objects_of(uri, options)[0]))
    return made, f"{parts.netloc}{parts.path}".rstrip("/")


def make_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Creates a folder and its parents; object storage has no folders."""
    if isinstance(filesystem, pafs.LocalFileSystem):
        filesystem.create_dir(path, recursive=True)


@lru_cache(maxsize=16)
def _s3(options: tuple[tuple[str, str], ...]) -> pafs.FileSystem:
    """One file system for all uses of the same options, because it keeps connections."""
    settings = dict(options)
    return pafs.S3FileSystem(
        access_key=settings.get("AWS_ACCESS_KEY_ID"),
        secret_key=settings.get("AWS_SECRET_ACCESS_KEY"),
        session_token=settings.get("AWS_SESSION_TOKEN"),
        region=settings.get("AWS_REGION"),
        endpoint_override=settings.get("AWS_ENDPOINT_URL"),
        force_virtual_addressing=is_true(settings.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST")),
        allow_delayed_open=True,  # writes small files with one request
    )
