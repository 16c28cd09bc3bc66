"""Where the driver reads a trace's data files: on a local disk from there, of object storage from their copies."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.parquet.page_index_writer import write_pages
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import ROWS_PER_GROUP

_LARGEST_SHARE = 2
"""Files are copied if they take such a part of the room for copies at most."""


def data_folder(storage: Storage, uri: str, files: Sequence[DataFile]) -> tuple[pafs.FileSystem, str]:
    """The file system, and the folder of the trace at ``uri`` there, in which these files are. Those in object storage
    are copied first, where they have not been; if they are too large, it is the object storage.

    Raises OSError for a file that is missing, or not as large as it was written.
    """
    mirror = storage.mirror
    if mirror is None or sum(file.bytes for file in files) * _LARGEST_SHARE > mirror.most_bytes:
        return storage.filesystem(uri)
    local, folder = pafs.LocalFileSystem(), mirror.folder_of(uri)
    fetched = set(mirror.fetch(uri, [(file.path, file.bytes) for file in files]))
    for file in files:
        if file.path in fetched and file.rows > ROWS_PER_GROUP:
            path = f"{folder}/{file.path}"
            write_pages(local, path, pq.read_metadata(path), tuple(file.bounds))
    return local, folder
