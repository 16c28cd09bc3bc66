"""Checksums of whole data files, in their names: ``<stem>.<CRC-32 of the file, 8 hexadecimal digits>.parquet``.

Pages have checksums of their own (Parquet format, "Checksumming"), which Arrow and Spark verify. Page headers and
footers have none: one changed bit can alter values, or crash the process inside Arrow. DuckDB verifies nothing.
Therefore a file is checked whole before its first read in a process, as long as that is cheap; single pages are
verified with their headers by the page index; ``dbt-dd verify --files`` checks all files. Only files on a local disk
have such names.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable
from functools import lru_cache

import pyarrow.parquet as pq
from pyarrow import fs as pafs

from dbt_incremental_dd.storage.uris import is_remote

_NAMED = re.compile(r"\.([0-9a-f]{8})\.parquet$")
CHECKED_BYTES = 64 << 20
"""Maximum number of bytes of files that are checked before a read, once in a process, by reading them whole."""
_CHUNK = 1 << 20
"""Bytes."""


def name_by_checksum(path: str) -> str:
    """Renames a local Parquet file. Returns its new path."""
    named = f"{path.removesuffix('.parquet')}.{_checksum(path)}.parquet"
    os.rename(path, named)
    return named


def flaw(filesystem: pafs.FileSystem, path: str) -> str | None:
    """What is wrong with a data file; None if nothing is. Reads the file whole."""
    named = _NAMED.search(path) if isinstance(filesystem, pafs.LocalFileSystem) else None
    try:
        if named:
            return None if _checksum(path) == named[1] else f"file {path} is not what was written: its checksum differs"
        with pq.ParquetFile(path, filesystem=filesystem, page_checksum_verification=True) as file:
            for _ in file.iter_batches():
                pass
    except (OSError, ValueError) as error:
        return f"file {path} cannot be read: {error}"
    return None


def require_intact(paths: Iterable[str]) -> None:
    """Raises OSError, naming the file, if one is not as it was written. Each local file is read once in a process;
    files beyond ``CHECKED_BYTES`` in one call are not checked."""
    left = CHECKED_BYTES
    for path in paths:
        named = _NAMED.search(path)
        if named is None or is_remote(path):
            continue
        left -= os.path.getsize(path)
        if left < 0:
            return
        if _checked(path) != named[1]:
            raise OSError(f"checksum verification failed while reading file {path}")


@lru_cache(maxsize=65_536)
def _checked(path: str) -> str:
    """The checksum at the first read: files never change."""
    return _checksum(path)


def _checksum(path: str) -> str:
    found = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            found = zlib.crc32(chunk, found)
    return f"{found:08x}"
