"""pyarrow's file systems: the local disk's, its own for S3, and obstore's for other stores, with the same options."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs as pafs

from dbt_incremental_dd.storage.objects import settings_of
from dbt_incremental_dd.storage.stores.s3 import S3
from dbt_incremental_dd.storage.stores.store import is_true
from dbt_incremental_dd.storage.uris import canonical, is_remote


def filesystem_of(uri: str, options: Mapping[str, str]) -> tuple[pafs.FileSystem, str]:
    """pyarrow's file system for a URI, and the path within it."""
    if not is_remote(uri):
        return pafs.LocalFileSystem(), uri
    parts = urlsplit(uri)
    make = _s3 if parts.scheme in S3.schemes else _other
    made = make(f"{parts.scheme}://{parts.netloc}", tuple(sorted(canonical(uri, options).items())))
    return made, f"{parts.netloc}{parts.path}".rstrip("/")


def make_folder(filesystem: pafs.FileSystem, path: str) -> None:
    """Creates a folder and its parents; object storage has no folders."""
    if isinstance(filesystem, pafs.LocalFileSystem):
        filesystem.create_dir(path, recursive=True)


@lru_cache(maxsize=16)
def _s3(_: str, options: tuple[tuple[str, str], ...]) -> pafs.FileSystem:
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


@lru_cache(maxsize=16)
def _other(bucket: str, options: tuple[tuple[str, str], ...]) -> pafs.FileSystem:
    from obstore.fsspec import FsspecStore

    settings, client = settings_of(bucket, options)
    made = FsspecStore(urlsplit(bucket).scheme, config=settings, client_options=client)  # type: ignore[call-overload]
    return pafs.PyFileSystem(_Handler(made))


class _Handler(pafs.FSSpecHandler):  # type: ignore[misc]
    """obstore's files do not take Arrow's buffers."""

    def open_output_stream(self, path: str, metadata: Mapping[str, str] | None) -> pa.NativeFile:
        return pa.PythonFile(_TakesBuffers(self.fs.open(path, "wb")), mode="w")


class _TakesBuffers(io.RawIOBase):
    """A file that is written from its beginning to its end, and is there once it is closed."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        taken = bytes(data)
        if taken:
            self._file.write(taken)
        self._size += len(taken)
        return len(taken)

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
