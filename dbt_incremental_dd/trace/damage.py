"""What a trace's log names and the disk does not have: a file that is missing, or was cut."""

from __future__ import annotations

from pyarrow import fs as pafs

from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import Log


def damage(storage: Storage, log: Log) -> str | None:
    """Which live file is not as it was written, and how; None where all are. Sizes are compared, not contents."""
    filesystem, root = storage.filesystem(log.uri)
    paths = [f"{root}/{file.path}" for file in log.files]
    for file, info in zip(log.files, filesystem.get_file_info(paths), strict=True):
        if info.type == pafs.FileType.NotFound:
            return f"file {info.path} is missing"
        if info.size != file.bytes:
            return f"file {info.path} has {info.size} of its {file.bytes} bytes"
    return None
