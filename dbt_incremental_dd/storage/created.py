"""Files of given bytes that any of several processes may create, on a local disk or in object storage: whole, durable,
and never replaced."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from dbt_incremental_dd.storage import durable, exclusive
from dbt_incremental_dd.storage.objects import objects_of
from dbt_incremental_dd.storage.uris import is_remote

_AT_ONCE = 16
"""Requests to an object store."""


def create_noted(uri: str, data: bytes, options: Mapping[str, str], *, is_synced: bool = False) -> bool:
    """Creates the file; False if there is another one already. In object storage one of the same bytes is this one.
    ``durable.settle`` syncs it; ``is_synced``: its contents are before it is visible. Raises OSError if it cannot be
    written."""
    if is_remote(uri):
        objects, path = objects_of(uri, options)
        return objects.create(path, data) is not None
    os.makedirs(os.path.dirname(uri), exist_ok=True)
    is_new = exclusive.create(uri, data, is_synced=is_synced)
    durable.note(uri)  # also one that somebody else has created a moment ago
    return is_new


def create(uri: str, data: bytes, options: Mapping[str, str]) -> bool:
    """Whether the file has these bytes, durably, because it has been created or was the same already. Raises
    FileNotFoundError if the file was removed meanwhile; OSError if it cannot be written."""
    if not create_noted(uri, data, options, is_synced=durable.enabled):
        if is_remote(uri):
            return False
        with open(uri, "rb") as file:
            if file.read() != data:
                return False
    durable.settle()
    return True


def read(uri: str, options: Mapping[str, str]) -> bytes | None:
    """The file's bytes; None if it does not exist. Raises OSError if it cannot be read."""
    try:
        if is_remote(uri):
            objects, path = objects_of(uri, options)
            return objects.read(path)
        with open(uri, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def move(folder: str, target: str, names: Collection[str], options: Mapping[str, str]) -> None:
    """Moves files to another folder, as of the present time, unless they are there already. At each moment, also of a
    power cut, each file is in at least one of them."""
    if is_remote(folder):
        objects, path = objects_of(folder, options)
        _, other = objects_of(target, options)
        there = present(target, names, options)

        def copy(name: str) -> None:
            with suppress(FileNotFoundError):
                objects.copy(f"{path}/{name}", f"{other}/{name}")

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(copy, [name for name in names if name not in there]))
        remove(folder, names, options)
        return
    os.makedirs(target, exist_ok=True)
    for name in names:
        with suppress(FileExistsError, FileNotFoundError):
            os.link(f"{folder}/{name}", f"{target}/{name}")
            durable.note(f"{target}/{name}")
    durable.settle()
    for name in names:  # not before: until then its time tells which file it is
        with suppress(FileNotFoundError):
            os.utime(f"{target}/{name}")
    remove(folder, names, options)


def remove(folder: str, names: Collection[str], options: Mapping[str, str]) -> None:
    """Removes the files that are there."""
    if is_remote(folder):
        objects, path = objects_of(folder, options)
        objects.delete([f"{path}/{name}" for name in names])
        return
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(f"{folder}/{name}")


def sizes(folder: str, options: Mapping[str, str]) -> dict[str, int]:
    """The files in a folder, without those that are not complete yet: names and bytes."""
    if is_remote(folder):
        objects, path = objects_of(folder, options)
        found, _ = objects.listed(path, recursive=False)
        return {one["path"].rsplit("/", 1)[-1]: int(one["size"]) for one in found}
    made = {}
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if not entry.name.startswith("."):
                    made[entry.name] = entry.stat().st_size
    return made


def present(folder: str, names: Collection[str], options: Mapping[str, str]) -> set[str]:
    """Which of the files are there."""
    if not is_remote(folder):
        return {name for name in names if os.path.exists(f"{folder}/{name}")}
    objects, path = objects_of(folder, options)

    def is_there(name: str) -> bool:
        try:
            return bool(objects.head(f"{path}/{name}"))
        except FileNotFoundError:
            return False

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return {name for name, found in zip(names, pool.map(is_there, names), strict=True) if found}
