"""The data files at a source's path, each once, whatever links lead to it.

On a local disk links are followed, also out of the folder. A folder or a file that several names lead to has one of
them: one that it was taken in by before, else its own, else the first. So a link to a folder above it is no cycle, and
a link that is added counts nothing twice. Hard links are files of their own.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

from pyarrow import fs as pafs

State = tuple[int, int]
"""A file's size, and when it was modified (ns)."""


def listing(
    filesystem: pafs.FileSystem, info: pafs.FileInfo, root: str, known: Collection[str] = ()
) -> dict[str, State]:
    """Every data file by its path below ``root``, which may be elsewhere next time; names that begin with ``_`` or
    ``.`` are none. ``known``: names that files had before."""
    if info.type != pafs.FileType.Directory:
        found = [info]
    elif isinstance(filesystem, pafs.LocalFileSystem):
        return _local(root, known)
    else:
        found = filesystem.get_file_info(pafs.FileSelector(info.path, recursive=True))
    return {
        item.path[len(root) + 1 :]: (item.size, item.mtime_ns)
        for item in found
        if item.type == pafs.FileType.File
        and _is_data(item.base_name)
        and all(map(_is_visible, item.path[len(root) :].split("/")))
    }


def is_utf8(name: str) -> bool:
    """Whether a name of the local disk is text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _local(root: str, known: Collection[str]) -> dict[str, State]:
    names: dict[str, list[str]] = {}
    for name in _Walk(root, known).files():
        names.setdefault(os.path.realpath(f"{root}/{name}"), []).append(name)
    chosen = (min(aliases, key=lambda name: _rank(root, name, known)) for aliases in names.values())
    return {name: state for name in chosen if (state := _state(f"{root}/{name}")) is not None}


class _Walk:
    """All names of files below a folder; those of folders that links lead to, once for each folder."""

    def __init__(self, root: str, known: Collection[str]) -> None:
        self._root = root
        self._known = known
        self._real = os.path.realpath(root)
        self._seen = {self._real}
        self._links: list[str] = []

    def files(self) -> Iterator[str]:
        """First what is in the folder itself, then what links to other folders add."""
        yield from self._below("")
        while self._links:
            self._links.sort(key=lambda name: _rank(self._root, f"{name}/", self._known), reverse=True)
            name = self._links.pop()
            real = os.path.realpath(f"{self._root}/{name}")
            is_above = self._real.startswith(real.rstrip("/") + "/")
            if real not in self._seen and not is_above:
                self._seen.add(real)
                yield from self._below(f"{name}/")

    def _below(self, prefix: str) -> Iterator[str]:
        """Without links to folders, which are noted."""
        with os.scandir(f"{self._root}/{prefix}") as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            name = f"{prefix}{entry.name}"
            if not _is_visible(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                real = os.path.realpath(entry.path)
                if real not in self._seen:
                    self._seen.add(real)
                    yield from self._below(f"{name}/")
            elif entry.is_symlink() and os.path.isdir(entry.path):
                self._links.append(name)
            elif _is_data(entry.name):
                yield name


def _rank(root: str, name: str, known: Collection[str]) -> tuple[bool, bool, str]:
    """The lowest is the name that a file or a folder (``name/``) has."""
    is_known = any(one.startswith(name) for one in known) if name.endswith("/") else name in known
    return not is_known, _has_link(root, name.rstrip("/")), name


def _has_link(root: str, name: str) -> bool:
    parts = name.split("/")
    return any(os.path.islink(f"{root}/{'/'.join(parts[: i + 1])}") for i in range(len(parts)))


def _state(path: str) -> State | None:
    """None of what is no file, such as a link to nothing."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns) if os.path.isfile(path) else None


def _is_visible(part: str) -> bool:
    return not part.startswith(("_", "."))


def _is_data(name: str) -> bool:
    return not name.endswith((".tmp", ".crc"))
