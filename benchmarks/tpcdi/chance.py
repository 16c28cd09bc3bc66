"""Random values without a state: each is a function of the seed, a purpose and a row's number.

So any row of any day is made by itself, in any order, and again in the same way.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Texts = npt.NDArray[np.str_]
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class Chance:
    """Values of one table. ``seed``: of all of it."""

    seed: int
    table: str

    def share(self, purpose: str, rows: Longs) -> Floats:
        """From 0 to below 1, for each row."""
        bits = self._bits(purpose, rows) >> np.uint64(11)
        return bits.astype(np.float64) / float(1 << 53)

    def number(self, purpose: str, rows: Longs, low: int, high: int) -> Longs:
        """From ``low`` to below ``high``, for each row."""
        return low + (self.share(purpose, rows) * (high - low)).astype(np.int64)

    def one(self, purpose: str, rows: Longs, of: Sequence[str]) -> Texts:
        """One of the texts for each row."""
        return np.asarray(of)[self.number(purpose, rows, 0, len(of))]

    def skewed(self, purpose: str, rows: Longs, count: int, power: float = 2.0) -> Longs:
        """From 0 to below ``count``, small numbers more often."""
        return (self.share(purpose, rows) ** power * count).astype(np.int64)

    def _bits(self, purpose: str, rows: Longs) -> npt.NDArray[np.uint64]:
        """SplitMix64 (Steele, Lea and Flood, 2014) of the row's number, from a beginning for each purpose."""
        begin = zlib.crc32(f"{self.table}.{purpose}".encode()) << 20 ^ self.seed
        with np.errstate(over="ignore"):
            z = (rows.astype(np.uint64) + np.uint64(begin)) * _STEP
            z = (z ^ (z >> np.uint64(30))) * _FIRST
            z = (z ^ (z >> np.uint64(27))) * _SECOND
            return z ^ (z >> np.uint64(31))
