"""Copies of a trace's files in one folder of an object store, for readers that do not know its log: there are no links.

The store makes them by itself. As with ``links`` adding one file is atomic, and any other change needs a new folder.
Outputs that are large are not doubled so: then readers are told the files' names.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.storage.links import MARK, STILL_READ, name_of, to_add
from dbt_incremental_dd.storage.objects import objects_of

_MOST_BYTES = 1 << 30
_AT_ONCE = 16
_SEEN: dict[str, frozenset[str]] = {}
"""The names in folders that this process has made show their traces."""
_MOST_SEEN = 2_000


@dataclass(frozen=True)
class Copies:
    """``options``: the store's. Folders are URIs."""

    options: Mapping[str, str]

    def follow(self, folder: str, root: str, files: Iterable[DataFile]) -> bool:
        """Makes the folder show the files under ``root``. Returns False, and changes nothing, if that takes more than
        one new copy."""
        objects, path = objects_of(folder, self.options)
        _, source = objects_of(root, self.options)
        there = _SEEN.pop(folder, None)  # kept again below: names are never used twice, so an old list does no harm
        try:
            if there is None:
                there = frozenset(objects.below(path).keys() - {MARK})
            new = to_add(there, files) if there else None
            for file in new or ():
                reached("links: before one more")
                objects.copy(f"{source}/{file.path}", f"{path}/{name_of(file)}")
        except OSError:
            return False
        if new is None:
            return False
        if len(_SEEN) >= _MOST_SEEN:
            _SEEN.clear()
        _SEEN[folder] = there | {name_of(file) for file in new}
        reached("links: followed")
        return True

    def link_all(self, folders: str, root: str, files: Iterable[DataFile]) -> int:
        """Creates a new folder that shows the files. Returns its number; 0 if they are too large, or another process is
        creating it."""
        files = tuple(files)
        if sum(file.bytes for file in files) > _MOST_BYTES:
            return 0
        objects, path = objects_of(folders, self.options)
        _, source = objects_of(root, self.options)
        try:
            number = max(_numbers(objects.below(path)), default=0) + 1
            if objects.create(f"{path}/{number}/{MARK}", str(time.time_ns()).encode()) is None:
                return 0
            reached("links: folder made")
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                copies = [(f"{source}/{file.path}", f"{path}/{number}/{name_of(file)}") for file in files]
                list(pool.map(lambda copy: objects.copy(*copy), copies))
        except OSError:
            return 0
        reached("links: all made")
        return number

    def forget(self, folders: str, kept: Iterable[int]) -> None:
        """Removes folders that are not shown any more, except recent ones, which may still be read."""
        objects, path = objects_of(folders, self.options)
        there, latest = objects.below(path), time.time() - STILL_READ
        for old in _numbers(there) - set(kept):
            own = {name: written for name, written in there.items() if name.startswith(f"{old}/")}
            if max(own.values()) < latest:
                reached("links: before removal")
                objects.delete([f"{path}/{name}" for name in own])


def _numbers(names: Iterable[str]) -> set[int]:
    parents = (name.partition("/")[0] for name in names)
    return {int(parent) for parent in parents if parent.isdecimal()}
