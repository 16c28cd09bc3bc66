"""A trace's files once more, as hard links in one folder, for readers that know no log: what is linked there shows.

One file more shows at once and whole. Any other change needs a new folder, which readers are then pointed at. Each
folder holds a mark, by whose time on disk a copy of the folder, such as one restored from a backup, is told apart.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.failpoints import reached

STILL_READ = 600.0
"""Seconds that a folder stays after it was last changed."""
_MARK = ".made"


def follow(folder: str, root: str, files: Iterable[DataFile]) -> bool:
    """Makes the folder show the files under ``root``; False if that is not one link more, or none.

    ``folder`` and ``root`` are paths of a local disk. Nothing is changed where it answers False.
    """
    wanted = {_name(file): file for file in files}
    try:
        there = _linked(folder)
        new = wanted.keys() - there
        if there - wanted.keys() or len(new) > 1:
            return False
        for name in new:
            reached("links: before one more")
            os.link(f"{root}/{wanted[name].path}", f"{folder}/{name}")
    except OSError:
        return False
    reached("links: followed")
    return True


def shows(folder: str, files: Iterable[DataFile]) -> bool:
    """Whether the folder shows these files and no others."""
    try:
        return _linked(folder) == {_name(file) for file in files}
    except OSError:
        return False


def made(folder: str) -> int:
    """When the folder's mark was written, in ns since 1970 by the disk's clock; 0 if there is no mark."""
    try:
        return os.stat(f"{folder}/{_MARK}").st_ctime_ns
    except OSError:
        return 0


def link_all(folders: str, root: str, files: Iterable[DataFile]) -> int:
    """Makes a new folder that shows the files, and gives its number; 0 if the disk has no hard links, or where
    somebody else is making one."""
    number = max(_numbers(folders), default=0) + 1
    try:
        os.makedirs(f"{folders}/{number}")
    except OSError:
        return 0
    reached("links: folder made")
    try:
        for file in files:
            os.link(f"{root}/{file.path}", f"{folders}/{number}/{_name(file)}")
        with open(f"{folders}/{number}/{_MARK}", "x"):
            pass
    except OSError:
        shutil.rmtree(f"{folders}/{number}", ignore_errors=True)
        return 0
    reached("links: all made")
    return number


def forget(folders: str, kept: Iterable[int]) -> None:
    """Removes the folders that are shown no more, but for new ones, which somebody may still read."""
    for old in _numbers(folders) - set(kept):
        try:
            age = time.time() - os.stat(f"{folders}/{old}").st_mtime
        except OSError:
            continue
        if age > STILL_READ:
            reached("links: before removal")
            shutil.rmtree(f"{folders}/{old}", ignore_errors=True)


def _numbers(folders: str) -> set[int]:
    return {int(name) for name in (os.listdir(folders) if os.path.isdir(folders) else ()) if name.isdecimal()}


def _linked(folder: str) -> set[str]:
    return {name for name in os.listdir(folder) if name != _MARK}


def _name(file: DataFile) -> str:
    return file.path.replace("/", "-")
