"""Where the driver reads a trace's data files: on a local disk from there, of object storage from their copies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.parquet.page_index import SUFFIX
from dbt_incremental_dd.parquet.page_index_writer import write_pages
from dbt_incremental_dd.storage.part_copy import PartCopy
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import ROWS_PER_GROUP

_LARGEST_SHARE = 2
"""Files are copied if they take such a part of the room for copies at most."""


def data_folder(storage: Storage, uri: str, files: Sequence[DataFile]) -> tuple[pafs.FileSystem, str]:
    """The file system, and the folder of the trace at ``uri`` there, in which these files are. Those in object storage
    are copied first, where they have not been; if they are too large, or cannot be copied, it is the object storage."""
    mirror = storage.mirror
    if mirror is None or sum(file.bytes for file in files) * _LARGEST_SHARE > mirror.most_bytes:
        return storage.filesystem(uri)
    local, folder = pafs.LocalFileSystem(), mirror.folder_of(uri)
    try:
        fetched = set(mirror.fetch(uri, [(file.path, file.bytes) for file in files]))
    except OSError:  # this disk's, or the store's, which tells it again
        return storage.filesystem(uri)
    for file in files:
        path = f"{folder}/{file.path}"
        if file.path in fetched and file.rows > ROWS_PER_GROUP and not os.path.exists(f"{path}{SUFFIX}"):
            write_pages(local, path, pq.read_metadata(path), tuple(file.bounds))
            if storage.checked is not None and os.path.exists(f"{path}{SUFFIX}"):  # in a run: it may write there
                mirror.offered(uri, f"{file.path}{SUFFIX}")
    return local, folder


def page_folder(
    storage: Storage, uri: str, files: Sequence[DataFile]
) -> tuple[pafs.FileSystem, str, dict[str, PartCopy]]:
    """As ``data_folder``, for a reader of few pages. The files by whose paths there is a part are not copied: their
    index is, and their pages are when they are read."""
    mirror, parts = storage.mirror, {}
    if mirror is not None:
        large = {file.path: file.bytes for file in files if file.rows > ROWS_PER_GROUP}
        with suppress(OSError):  # this disk's, or the store's, which tells it again
            parts = mirror.parts(uri, large, SUFFIX)
    filesystem, folder = data_folder(storage, uri, [file for file in files if file.path not in parts])
    if not isinstance(filesystem, pafs.LocalFileSystem):
        return filesystem, folder, {}
    return filesystem, folder, {f"{folder}/{path}": part for path, part in parts.items()}
