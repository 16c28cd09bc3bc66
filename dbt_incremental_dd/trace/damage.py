"""Damage: files named by a trace's log that are missing, truncated or altered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from pyarrow import fs as pafs

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.parquet.checksum import flaw, require_intact
from dbt_incremental_dd.trace.entries import remedy
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log

_CONTENTS = re.compile(r"checksum|parquet|decompress|zstd|thrift|corrupt|invalid|deserializ", re.IGNORECASE)
_AT_ONCE = 4


def may_be_damage(error: BaseException) -> bool:
    """Whether the error may be caused by altered contents of a file, so that checking all of them is worthwhile."""
    return bool(_CONTENTS.search(str(error)))


def damaged(name: str, uri: str, error: BaseException, path: str = "") -> StateError:
    """The error for a data file that cannot be read. ``path``: if ``error`` does not name it."""
    what = f"file {path} cannot be read: {error}" if path else str(error)
    return StateError(f"what is stored of {name} is damaged: {what}", remedy(uri))


def require_readable(log: Log, files: Iterable[DataFile]) -> None:
    """Raises StateError if a file is not as it was written, as far as ``require_intact`` checks."""
    try:
        require_intact(f"{log.uri}/{file.path}" for file in files)
    except OSError as error:
        raise damaged(log.name, log.uri, error) from error


def logs_of(place: CollectionStore) -> Iterator[Log]:
    """The collection's own log, and those of its states as of its last commit."""
    log = place.log()
    if log is None:
        return
    yield log
    manifest = place.read_manifest(log.manifest)
    for name, version in manifest.inner.items() if manifest is not None else ():
        yield place.inner(name).log_at(version)


def damage(storage: Storage, log: Log, *, contents: bool = False) -> str | None:
    """The first damaged file and its damage; None if there is none. Compares sizes and, with ``contents``, reads the
    files."""
    filesystem, root = storage.filesystem(log.uri)
    paths = [f"{root}/{file.path}" for file in log.files]
    for file, info in zip(log.files, filesystem.get_file_info(paths), strict=True):
        if info.type == pafs.FileType.NotFound:
            return f"file {info.path} is missing"
        if info.size != file.bytes:
            return f"file {info.path} has {info.size} of its {file.bytes} bytes"
    if not contents:
        return None
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return next((found for found in pool.map(lambda path: flaw(filesystem, path), paths) if found), None)
