"""Copies of parts of an object: a sparse file on the driver's disk, into which ranges are fetched when first read.

A range is known to be there by its checksum. So processes may share the file, and one that is killed leaves no harm.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from dbt_incremental_dd.storage import downloads

SUFFIX = ".part"
"""Of the sparse file's name, after that of the whole copy."""
REQUEST_BYTES = 256 << 10
"""As many bytes take as long as one request more, where many are under way."""

Range = tuple[int, int, int]
"""The first byte, the byte after the last one, and the CRC-32 of those between."""
Gap = tuple[int, int]
"""The first byte, and the byte after the last one."""


@dataclass(frozen=True)
class PartCopy:
    """``path``: where the whole copy would be. ``read``: fetches a range of the object. ``read_whole``: makes the whole
    copy. These two raise OSError. Thread-safe."""

    path: str
    size: int
    read: Callable[[int, int], bytes]
    read_whole: Callable[[], None]

    @property
    def is_whole(self) -> bool:
        """Whether there is a whole copy by now."""
        return os.path.exists(self.path)

    def is_cheaper_whole(self, gaps: Sequence[Gap]) -> bool:
        """Whether fetching the object takes no longer than the gaps."""
        return cost(gaps) >= REQUEST_BYTES + self.size

    def opened(self) -> OpenPart:
        """The sparse file, made where it is missing. Raises OSError."""
        return OpenPart(self)


class OpenPart:
    """A sparse file, whatever becomes of its name meanwhile. It takes two file descriptors."""

    def __init__(self, copy: PartCopy) -> None:
        self._copy = copy
        self._file = os.fdopen(os.open(f"{copy.path}{SUFFIX}", os.O_RDWR | os.O_CREAT, 0o600), "r+b", 0)
        if os.fstat(self._file.fileno()).st_size != copy.size:
            self._file.truncate(copy.size)
        os.utime(self._file.fileno())
        self.view = memoryview(mmap.mmap(self._file.fileno(), copy.size, access=mmap.ACCESS_READ))
        """Its bytes; zeros where nothing was fetched."""

    def gaps(self, ranges: Iterable[Range]) -> list[Gap]:
        """What has to be fetched for these ranges: those that are not there, joined where they are close."""
        found: list[Gap] = []
        for start, end, _ in sorted(one for one in ranges if self._lacks(*one)):
            if found and start - found[-1][1] <= REQUEST_BYTES:
                found[-1] = found[-1][0], max(end, found[-1][1])
            else:
                found.append((start, end))
        return found

    def fetch(self, gap: Gap) -> None:
        """Fetches one. Raises OSError."""
        start, end = gap
        data = self._copy.read(start, end)
        if len(data) != end - start:
            raise OSError(f"{len(data)} of {end - start} bytes were read for {self._copy.path}")
        while data:
            written = os.pwrite(self._file.fileno(), data, start)
            data, start = data[written:], start + written

    def _lacks(self, start: int, end: int, checksum: int) -> bool:
        """No page begins with a zero, so that what was never fetched is told even from a page whose checksum is that
        of zeros."""
        if start == end:
            return False
        return self.view[start] == 0 or zlib.crc32(self.view[start:end]) != checksum


def cost(gaps: Iterable[Gap]) -> int:
    """What fetching takes, as bytes: each request counts as many."""
    return sum(REQUEST_BYTES + end - start for start, end in gaps)


def fetch_ranges(wanted: Iterable[tuple[OpenPart, Iterable[Range]]]) -> None:
    """Fetches what is missing of the ranges, side by side. Raises OSError."""
    downloads.all_of(partial(part.fetch, gap) for part, ranges in wanted for gap in part.gaps(ranges))
