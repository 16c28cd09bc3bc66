"""Ten sources of events, as folders of Parquet files that are only added to: each file one batch, numbered by ``seq``.

An event is a record of an order as it is from then on. ``events_0`` is a hundredth of the others' size.
"""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SOURCES = tuple(f"events_{i}" for i in range(10))
COLUMNS = {
    "id": "bigint",
    "customer_id": "int",
    "amount": "decimal(12,2)",
    "status": "string",
    "ts": "timestamp",
    "seq": "bigint",
}
_STATUSES = np.array(["open", "paid", "sent", "void"])
_CENT = pa.scalar(Decimal("0.01"))
_ORDERS = 50
"""Of a customer at first; the number of customers stays, so that an order's customer does."""
_START = 1_700_000_000
"""Seconds since 1970 of the first order."""


class Feed:
    """``rows``: orders of each source but the small one at first."""

    def __init__(self, folder: Path, rows: int, seed: int = 1) -> None:
        self._folder = folder
        self._random = np.random.default_rng(seed)
        self._number = 0
        self._orders: dict[str, int] = {}
        self._customers: dict[str, int] = {}
        shutil.rmtree(folder, ignore_errors=True)
        for name in SOURCES:
            first = max(rows // 100, 1) if name == "events_0" else rows
            self._orders[name] = 0
            self._customers[name] = max(10, first // _ORDERS)
            self._write(name, np.arange(0), first)

    def change(self, name: str, share: float) -> int:
        """So much of the source's orders as changed and new ones, half of each; the number of events."""
        each = max(1, round(self._orders[name] * share / 2))
        return self._write(name, self._random.choice(self._orders[name], each, replace=False), each)

    def _write(self, name: str, changed: np.ndarray, new: int) -> int:
        self._number += 1
        ids = np.concatenate([changed, np.arange(self._orders[name], self._orders[name] + new)])
        self._orders[name] += new
        cents = pa.array(self._random.integers(100, 100_000, len(ids)))
        table = pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "customer_id": pa.array(ids * 7919 % self._customers[name], pa.int32()),
                "amount": pc.multiply(cents.cast(pa.decimal128(19, 0)), _CENT).cast(pa.decimal128(12, 2)),
                "status": pa.array(_STATUSES[self._random.integers(0, len(_STATUSES), len(ids))]),
                "ts": pa.array((_START + ids) * 1_000_000, pa.timestamp("us", "UTC")),
                "seq": pa.array(np.full(len(ids), self._number), pa.int64()),
            }
        )
        (self._folder / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(table, self._folder / name / f"{self._number:05d}.parquet")
        return len(ids)
