"""A service's tables as folders of Parquet files that are only added to: each record is a row as it is from then on.

Amounts are multiples of a quarter, so that sums of doubles are the same in any order.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SOURCES = ("issues", "comments", "pulls", "reviews", "commits", "deploys")
COLUMNS = {
    "id": "bigint",
    "parent_id": "bigint",
    "user_id": "int",
    "amount": "string",
    "state": "string",
    "created_at": "timestamp",
    "closed_at": "timestamp",
    "seq": "bigint",
}
_STATES = np.array(["open", "closed", "merged"])
_START = 1_700_000_000
"""Seconds since 1970 of the first record."""
_DAYS = 700


class Feed:
    """``rows``: of each source at first."""

    def __init__(self, folder: Path, rows: int, seed: int = 1) -> None:
        self._folder = folder
        self._random = np.random.default_rng(seed)
        self._number = 0
        self._count = dict.fromkeys(SOURCES, 0)
        shutil.rmtree(folder, ignore_errors=True)
        for name in SOURCES:
            self._write(name, np.arange(0), rows)

    def change(self, name: str, records: int) -> None:
        """So many records of a source: half of them change a row, half are new."""
        changed = self._random.choice(self._count[name], max(records // 2, 1), replace=False)
        self._write(name, changed, records - records // 2)

    def _write(self, name: str, changed: np.ndarray, new: int) -> None:
        self._number += 1
        random, count = self._random, self._count[name]
        ids = np.concatenate([changed, np.arange(count, count + new)])
        self._count[name] += new
        created = _START + (ids * 7919 % _DAYS) * 86_400 + ids % 86_400
        closed = created + random.integers(0, 30 * 86_400, len(ids))
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "parent_id": pa.array(ids * 31 % max(count, new), pa.int64()),
                "user_id": pa.array(ids * 104_729 % 500, pa.int32()),
                "amount": pa.array([f"{quarters / 4:.2f}" for quarters in random.integers(0, 4_000, len(ids))]),
                "state": pa.array(_STATES[random.integers(0, len(_STATES), len(ids))]),
                "created_at": pa.array(created * 1_000_000, pa.timestamp("us", "UTC")),
                "closed_at": pa.array(
                    closed * 1_000_000, pa.timestamp("us", "UTC"), mask=random.random(len(ids)) < 0.3
                ),
                "seq": pa.array(np.full(len(ids), self._number), pa.int64()),
            }
        )
        (self._folder / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, self._folder / name / f"{self._number:05d}.parquet")
