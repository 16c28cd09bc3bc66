"""Whether a table is as it was when it was last read, told without a session."""

from __future__ import annotations

from typing import Any

from pyarrow.fs import FileInfo, FileSelector, FileType

from dbt_incremental_dd.sources.connectors.catalog_spec import CatalogSpec
from dbt_incremental_dd.sources.connectors.table.catalog import Described
from dbt_incremental_dd.sources.poll import PollRequest
from dbt_incremental_dd.trace.layout import Storage

_FILES = ("parquet", "csv", "json", "orc", "text")
"""Providers whose tables are the files in their folder."""


def folder_of(told: Described) -> str | None:
    """The folder of a table that is just the files in it, as the catalog has it; None of any other relation."""
    is_one = told.kind in ("MANAGED", "EXTERNAL") and told.provider in _FILES and not told.partitioned_by
    return told.location if is_one else None


def is_unchanged(request: PollRequest[CatalogSpec]) -> bool:
    """True where nobody has opened the catalog since, and the table's folder has just the files that were read."""
    session, progress = request.workspace.session, request.progress
    folder, seen = progress.get("folder"), progress.get("files")
    is_known = not session.is_open and session.memory.has_table(request.spec.relation)
    if not is_known or request.stored is None or not isinstance(folder, str) or not seen:
        return False
    return bool(files_in(request.storage, folder) == seen)


def files_in(storage: Storage, folder: str) -> dict[str, Any] | None:
    """The data files in a table's folder by their paths, with size in bytes and time in ns; None if there is anything
    else in it, or it cannot be read."""
    filesystem, path = storage.filesystem(folder.removeprefix("file:"))
    try:
        found = [info for info in filesystem.get_file_info(FileSelector(path)) if not _is_hidden(info)]
    except OSError:
        return None
    is_flat = all(info.type == FileType.File for info in found)
    return {info.path: [info.size or 0, info.mtime_ns or 0] for info in found} if is_flat else None


def _is_hidden(info: FileInfo) -> bool:
    """As Spark passes over them."""
    return bool(info.base_name.startswith(("_", ".")))
