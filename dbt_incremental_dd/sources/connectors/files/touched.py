"""Local files with a new time and the old bytes, as in a fresh checkout or a copy: they have not changed.

A digest of each file that is taken in is kept with the source's progress. In object storage none is: there a file's
time changes only when somebody writes it, and its bytes would have to be fetched once more.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from pyarrow import fs as pafs

from dbt_incremental_dd.sources.connectors.files.listing import State

_DIGITS = 24
"""Hexadecimal ones of a digest that are kept."""


def kept_digests(progress: Mapping[str, Any]) -> dict[str, str]:
    """By file, of a progress that ``digests`` is part of; the progress of earlier releases has none."""
    names, digests = sorted(progress.get("files", {})), progress.get("digests", ())
    return {name: digest for name, digest in zip(names, digests, strict=False) if digest}


def unless_touched(
    filesystem: pafs.FileSystem,
    root: str,
    found: Mapping[str, State],
    seen: Mapping[str, State],
    known: Mapping[str, str],
) -> dict[str, State]:
    """The files' states, of those that were touched alone the former ones. ``known``: digests by file."""
    suspects = [
        name
        for name, state in found.items()
        if name in known and name in seen and seen[name] != state and seen[name][0] == state[0]
    ]
    digests = _digests(filesystem, root, {name: found[name] for name in suspects})
    return {**found, **{name: seen[name] for name in suspects if digests.get(name) == known[name]}}


def digests(
    filesystem: pafs.FileSystem, root: str, kept: Mapping[str, State], new: Collection[str], known: Mapping[str, str]
) -> list[str | None]:
    """Of the files that have been taken in, by their names' order; none where no file has one. ``new``: those that are
    taken in now; ``known``: digests of the others."""
    fresh = _digests(filesystem, root, {name: kept[name] for name in new})
    of_all = {**{name: digest for name, digest in known.items() if name not in new}, **fresh}
    return [of_all.get(name) for name in sorted(kept)] if of_all else []


def _digests(filesystem: pafs.FileSystem, root: str, files: Mapping[str, State]) -> dict[str, str]:
    if not isinstance(filesystem, pafs.LocalFileSystem) or not files:
        return {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda name: _digest(f"{root}/{name}", files[name]), files)
        return {name: digest for name, digest in zip(files, found, strict=True) if digest is not None}


@lru_cache(maxsize=10_000)
def _digest(path: str, state: State) -> str | None:
    """None of a file that is not, or not any more, in the state in which it was listed."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
            now = os.fstat(file.fileno())
    except OSError:  # whoever reads the file says what is wrong with it
        return None
    return digest if (now.st_size, now.st_mtime_ns) == state else None
