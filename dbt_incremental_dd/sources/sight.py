"""What a source looks like from outside, cheap to tell, and different whenever it may have something new."""

from __future__ import annotations

from collections.abc import Hashable

from pyarrow import fs as pafs

from dbt_incremental_dd.sources.config import SourceSpec
from dbt_incremental_dd.sources.files import listing
from dbt_incremental_dd.trace.declared import declared
from dbt_incremental_dd.trace.layout import Storage


def sight(storage: Storage, spec: SourceSpec) -> Hashable | None:
    """Two that are equal: nothing has come in between. None where only a run can tell: a relation of the catalog.

    A source that is not there, or cannot be listed just now, looks like one with nothing in it.
    """
    if spec.path is None:
        return None
    try:
        filesystem, path = storage.filesystem(spec.path)
        info = filesystem.get_file_info(f"{path}/_delta_log" if spec.format == "delta" else path)
        found: Hashable = (info.size, info.mtime_ns)
        if info.type == pafs.FileType.Directory:
            found = _folder(filesystem, info, is_log=spec.format == "delta")
    except OSError:
        found = ()
    complete = declared(storage.collection(spec.name)) if spec.frontier == "managed" else None
    return found, complete


def _folder(filesystem: pafs.FileSystem, info: pafs.FileInfo, is_log: bool) -> Hashable:
    if not is_log:
        return frozenset(listing(filesystem, info, info.path).items())
    entries = filesystem.get_file_info(pafs.FileSelector(info.path))
    return max((entry.base_name for entry in entries if entry.base_name.endswith(".json")), default="")
