"""A trace's files once more, as hard links in one folder, for readers that know no log: what is linked there shows.

One file more shows at once and whole. Any other change needs a new folder, which readers are then pointed at.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from dbt_incremental_dd.core.batch import DataFile


def follow(folder: str, root: str, files: Iterable[DataFile]) -> bool:
    """Makes the folder show the files under ``root``; False where that is not one link more, or none.

    ``folder`` and ``root`` are paths of a local disk. Nothing is changed where it answers False.
    """
    wanted = {_name(file): file for file in files}
    try:
        there = set(os.listdir(folder))
        new = wanted.keys() - there
        if there - wanted.keys() or len(new) > 1:
            return False
        for name in new:
            os.link(f"{root}/{wanted[name].path}", f"{folder}/{name}")
    except OSError:
        return False
    return True


def link_all(folders: str, root: str, files: Iterable[DataFile]) -> int:
    """Makes a new folder that shows the files, and gives its number; 0 where the disk has no hard links, or where
    somebody else is making one.

    The folder before it stays for those who still read it; older ones go.
    """
    present = sorted(int(name) for name in (os.listdir(folders) if os.path.isdir(folders) else ()))
    number = (present[-1] if present else 0) + 1
    try:
        os.makedirs(f"{folders}/{number}")
    except OSError:
        return 0
    try:
        for file in files:
            os.link(f"{root}/{file.path}", f"{folders}/{number}/{_name(file)}")
    except OSError:
        shutil.rmtree(f"{folders}/{number}", ignore_errors=True)
        return 0
    for old in present[:-1]:
        shutil.rmtree(f"{folders}/{old}", ignore_errors=True)
    return number


def _name(file: DataFile) -> str:
    return file.path.replace("/", "-")
