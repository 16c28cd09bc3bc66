"""Which file of metadata is the table's: numbered ones, as Iceberg's own tables in file systems have them, each created
by one writer only. A hint says which one is the last; whoever follows it also looks for the next ones.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from contextlib import suppress
from typing import Any

from dbt_incremental_dd.open_table.iceberg.metadata import Metadata
from dbt_incremental_dd.storage import durable, uploads
from dbt_incremental_dd.storage.created import create_noted
from dbt_incremental_dd.storage.exclusive import SCRATCH
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.trace.layout import Storage

_NAME = re.compile(r"v(\d+)(\.gz)?\.metadata\.json(\.gz)?", re.ASCII)
_GZIP = b"\x1f\x8b"
_KEPT = 50
"""Files of metadata before the last one, which readers may still have been told of."""


def metadata_path(number: int) -> str:
    """Of the file of this number, below the table's folder."""
    return f"metadata/v{number}.metadata.json"


HINT = "metadata/version-hint.text"


def newest(storage: Storage, uri: str) -> int:
    """The number of the table's last file of metadata; 0 where there is no table."""
    number = _hinted(storage, uri)
    if number == 0 or not is_there(storage, uri, number):
        number = max((int(match[1]) for name in _names(storage, uri) if (match := _NAME.fullmatch(name))), default=0)
        if number:
            hint(storage, uri, number)
        return number
    last = number
    while is_there(storage, uri, last + 1):
        last += 1
    if last > number:
        hint(storage, uri, last)
    return last


def _names(storage: Storage, uri: str) -> tuple[str, ...]:
    return storage.list_names(f"{uri}/metadata")


def _hinted(storage: Storage, uri: str) -> int:
    try:
        return int(storage.read_bytes(f"{uri}/{HINT}"))
    except (FileNotFoundError, ValueError):
        return 0


def _name(storage: Storage, uri: str, number: int) -> str | None:
    """The path of that file; None where there is none. Others may have written it compressed."""
    for path in (metadata_path(number), f"metadata/v{number}.gz.metadata.json"):
        if mark(storage, f"{uri}/{path}") is not None:
            return path
    return None


def is_there(storage: Storage, uri: str, number: int) -> bool:
    """Whether somebody has written that file."""
    return _name(storage, uri, number) is not None


def mark(storage: Storage, path: str) -> str | None:
    """What tells a file from any other one at its path; None where there is none."""
    try:
        if storage.is_local:
            return str(os.stat(path).st_mtime_ns)
        objects, key = objects_of(path, storage.options)
        return objects.tag(key)
    except FileNotFoundError:
        return None


def read(storage: Storage, uri: str, number: int) -> Metadata:
    """The file's contents. Raises OSError or ValueError where it cannot be read."""
    data = storage.read_bytes(f"{uri}/{_name(storage, uri, number) or metadata_path(number)}")
    found: Any = json.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
    if not isinstance(found, dict):
        raise ValueError(f"its metadata {metadata_path(number)} is damaged")
    return found


def write(storage: Storage, uri: str, number: int, metadata: Metadata) -> bool:
    """Creates the file, which ``hint`` syncs; False where another writer came first. Raises OSError."""
    data = json.dumps(metadata, separators=(",", ":")).encode()
    if is_there(storage, uri, number):
        return False
    return create_noted(f"{uri}/{metadata_path(number)}", data, storage.options)


def hint(storage: Storage, uri: str, number: int) -> None:
    """Says which file is the last one, and syncs it with all that is noted to be. A table is right without it: readers
    that follow it see a former version. Raises OSError if syncing fails."""
    path, text = f"{uri}/{HINT}", str(number).encode()
    if not storage.is_local:
        objects, key = objects_of(path, storage.options)
        with suppress(OSError):
            objects.write(key, text)
        return
    scratch = f"{path}{SCRATCH}"
    with suppress(OSError), open(scratch, "wb") as file:
        file.write(text)
        durable.note(scratch)
    durable.settle()
    with suppress(OSError):
        os.replace(scratch, path)


def remove_former(storage: Storage, uri: str, number: int) -> None:
    """Removes one that has become old with this one: each lists all snapshots."""
    if number <= _KEPT:
        return
    path = f"{uri}/{metadata_path(number - _KEPT)}"
    with suppress(OSError):
        if storage.is_local:
            os.unlink(path)
        else:
            objects, key = objects_of(path, storage.options)
            uploads.aside(lambda: objects.delete([key]))


def kept_paths(number: int) -> set[str]:
    """The paths of the files that stay, below the table's folder."""
    return {HINT, *(metadata_path(n) for n in range(max(number - _KEPT, 0) + 1, number + 1))}
