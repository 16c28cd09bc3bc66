"""Hard links to a trace's files in one folder, for readers that do not know its log: what is linked is visible.

Adding one file is atomic. Any other change needs a new folder, to which readers are then redirected. Each folder holds
a mark, whose time on disk distinguishes it from a copy, such as one restored from a backup.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Set

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.failpoints import reached

STILL_READ = 600.0
"""Seconds for which a folder stays after its last change."""
MARK = ".made"
"""A file in each folder, which readers do not see."""


def follow(folder: str, root: str, files: Iterable[DataFile]) -> bool:
    """Makes the folder show the files under ``root``. Returns False, and changes nothing, if that takes more than one
    new link.

    ``folder`` and ``root`` are paths of a local disk.
    """
    try:
        new = to_add(_links_in(folder), files)
        for file in new or ():
            reached("links: before one more")
            os.link(f"{root}/{file.path}", f"{folder}/{name_of(file)}")
    except OSError:
        return False
    if new is None:
        return False
    reached("links: followed")
    return True


def to_add(there: Set[str], files: Iterable[DataFile]) -> list[DataFile] | None:
    """Which of the files are to be added to a folder of these names, at most one; None if that is not enough."""
    by_name = {name_of(file): file for file in files}
    new = [file for name, file in by_name.items() if name not in there]
    return None if there - by_name.keys() or len(new) > 1 else new


def shows(folder: str, files: Iterable[DataFile]) -> bool:
    """Whether the folder shows these files and no others."""
    try:
        return _links_in(folder) == {name_of(file) for file in files}
    except OSError:
        return False


def made(folder: str) -> int:
    """When the folder's mark was written, in ns since 1970 by the disk's clock; 0 if there is no mark."""
    try:
        return os.stat(f"{folder}/{MARK}").st_ctime_ns
    except OSError:
        return 0


def link_all(folders: str, root: str, files: Iterable[DataFile]) -> int:
    """Creates a new folder that shows the files. Returns its number; 0 if the disk has no hard links, or another
    process is creating it."""
    number = max(_numbers(folders), default=0) + 1
    try:
        os.makedirs(f"{folders}/{number}")
    except OSError:
        return 0
    reached("links: folder made")
    try:
        for file in files:
            os.link(f"{root}/{file.path}", f"{folders}/{number}/{name_of(file)}")
        with open(f"{folders}/{number}/{MARK}", "x"):
            pass
    except OSError:
        shutil.rmtree(f"{folders}/{number}", ignore_errors=True)
        return 0
    reached("links: all made")
    return number


def forget(folders: str, kept: Iterable[int]) -> None:
    """Removes folders that are not shown any more, except recent ones, which may still be read."""
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


def _links_in(folder: str) -> set[str]:
    return {name for name in os.listdir(folder) if name != MARK}


def name_of(file: DataFile) -> str:
    """What the file is called in such a folder."""
    return file.path.replace("/", "-")
