"""Files with a new time and the old bytes, as in a fresh checkout, a copy or a repeated upload: they have not changed.

A digest of each file that is taken in is kept with the source's progress: of a local file a hash, of an object in S3
its entity tag, which comes with a listing. Other stores give an object that is written again another tag.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from pyarrow import fs as pafs

from dbt_incremental_dd.sources.connectors.files.listing import State
from dbt_incremental_dd.storage.objects import objects_of

_DIGITS = 24
"""Hexadecimal ones of a hash that are kept."""
_SECOND = 1_000_000_000
Digests = Callable[[Mapping[str, State]], dict[str, str]]
"""By file, of files in a state; none of a file that is not, or not any more, in that state."""


def digests_of(filesystem: pafs.FileSystem, root: str, uri: str, options: Mapping[str, str]) -> Digests:
    """Of the files below ``root``, which is the folder of ``uri`` or the one that a file at ``uri`` is in."""
    if isinstance(filesystem, pafs.LocalFileSystem):
        return partial(_hashes, root)
    bucket = root.split("/", 1)[0]
    return partial(_tags, uri, options, root[len(bucket) + 1 :]) if uri.startswith("s3") else lambda _: {}


def kept_digests(progress: Mapping[str, Any]) -> dict[str, str]:
    """By file, of a progress that ``digests`` is part of; the progress of earlier releases has none."""
    names, digests = sorted(progress.get("files", {})), progress.get("digests", ())
    return {name: digest for name, digest in zip(names, digests, strict=False) if digest}


def unless_touched(
    digests: Digests, found: Mapping[str, State], seen: Mapping[str, State], known: Mapping[str, str]
) -> dict[str, State]:
    """The files' states, of those that were touched alone the former ones. ``known``: digests by file."""
    suspects = {
        name: state
        for name, state in found.items()
        if name in known and name in seen and seen[name] != state and seen[name][0] == state[0]
    }
    now = digests(suspects) if suspects else {}
    return {**found, **{name: seen[name] for name in suspects if now.get(name) == known[name]}}


def updated_digests(
    digests: Digests, kept: Mapping[str, State], new: Collection[str], known: Mapping[str, str]
) -> list[str | None]:
    """Of the files that have been taken in, by their names' order; none where no file has one. ``new``: those that are
    taken in now; ``known``: digests of the others."""
    fresh = digests({name: kept[name] for name in new}) if new else {}
    of_all = {**{name: digest for name, digest in known.items() if name not in new}, **fresh}
    return [of_all.get(name) for name in sorted(kept)] if of_all else []


def _hashes(root: str, files: Mapping[str, State]) -> dict[str, str]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda name: _hash(f"{root}/{name}", files[name]), files)
        return {name: digest for name, digest in zip(files, found, strict=True) if digest is not None}


def _tags(uri: str, options: Mapping[str, str], folder: str, files: Mapping[str, State]) -> dict[str, str]:
    """None where the store does not tell: whoever reads the files says what is wrong."""
    found: dict[str, str] = {}
    with suppress(OSError):
        for one in objects_of(uri, options)[0].listed(folder, recursive=True)[0]:
            name = one["path"].removeprefix(f"{folder}/" if folder else "")
            state = files.get(name)
            written = one["last_modified"].timestamp()
            if state is not None and one["e_tag"] and (one["size"], int(written)) == (state[0], state[1] // _SECOND):
                found[name] = one["e_tag"]
    return found


@lru_cache(maxsize=10_000)
def _hash(path: str, state: State) -> str | None:
    """None of a file that is in another state."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]
            now = os.fstat(file.fileno())
    except OSError:  # whoever reads the file says what is wrong with it
        return None
    return digest if (now.st_size, now.st_mtime_ns) == state else None
