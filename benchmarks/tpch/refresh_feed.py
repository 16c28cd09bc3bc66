"""Refreshes of TPC-H's orders at any scale: new ones, changed ones and removed ones, each with their lines.

As RF1 and RF2 do, a refresh inserts and deletes; it also updates. Nothing but the orders' keys is held in memory, as
one array: Python's garbage collector would look through a list of them while a run is timed.
"""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.tpch.feed import KEYS, generate, plain

Where = Literal["recent", "random"]
_ROWS = 1_000_000
_SPARSE = 32
"""Of so many order keys in a row TPC-H uses the first eight; the others are free for new orders among the old ones."""


@dataclass(frozen=True)
class Refresh:
    """How many records a refresh has written."""

    orders: int
    lines: int


class RefreshFeed:
    """Tables as folders of Parquet files; the generated ones stay beside them, for rebuilds.

    ``resume`` goes on after the refreshes that the folder has.
    """

    def __init__(self, folder: Path, scale: float, resume: bool = False, seed: int = 1) -> None:
        self._folder = folder
        self._rng = random.Random(seed)
        self._number = 0
        self._touched: set[int] = set()
        self.generated = folder / "generated"
        made_at, wanted = folder / "generated.scale", f"{scale:g}"
        if not self.generated.exists() or not made_at.exists() or made_at.read_text() != wanted:
            shutil.rmtree(self.generated, ignore_errors=True)
            generate(self.generated, scale)
            made_at.write_text(wanted)
        keys = pq.read_table(self.generated / "orders.parquet", columns=["o_orderkey"])["o_orderkey"]
        self._keys = np.sort(keys.to_numpy())
        self.orders = len(self._keys)
        self._next = int(self._keys[-1]) + _SPARSE
        if resume:
            self._resume()
            return
        for name in KEYS:
            shutil.rmtree(folder / name, ignore_errors=True)
            self._first_load(name)
        self._remember()

    def _resume(self) -> None:
        state = json.loads((self._folder / "feed.json").read_text())
        self._number, self._next, self._touched = state["number"], state["next"], set(state["touched"])
        self._keys = self._keys[~np.isin(self._keys, list(self._touched))]
        self._rng.seed(self._number)

    def _remember(self) -> None:
        state = {"number": self._number, "next": self._next, "touched": sorted(self._touched)}
        (self._folder / "feed.json").write_text(json.dumps(state))

    def _first_load(self, name: str) -> None:
        (self._folder / name).mkdir(parents=True)
        file = pq.ParquetFile(self.generated / f"{name}.parquet")
        writer = None
        for batch in file.iter_batches(_ROWS):
            table = _records(pa.Table.from_batches([batch]), "u", 0)
            writer = writer or pq.ParquetWriter(self._folder / name / "00000.parquet", table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()

    def refresh(self, where: Where, orders: int) -> Refresh:
        """Changes so many orders: a third is new, a third updated, a third removed; no order twice."""
        each = max(1, round(orders / 3))
        chosen = self._choose(where, 3 * each)
        copied, updated, removed = chosen[:each], chosen[each : 2 * each], chosen[2 * each :]
        new = {key: self._new_key(key, where) for key in copied}
        old, lines = self._rows("orders", chosen), self._rows("lineitem", chosen)
        self._write("orders", *_parts(old, "o_orderkey", new, updated, removed))
        self._write("lineitem", *_parts(lines, "l_orderkey", new, updated, removed))
        self._touched.update(chosen)
        self._remember()
        return Refresh(old.num_rows, lines.num_rows)

    def _choose(self, where: Where, count: int) -> list[int]:
        """Orders that no refresh has touched yet; they are not given again."""
        size = len(self._keys)
        places = list(range(size - count, size)) if where == "recent" else self._rng.sample(range(size), count)
        chosen: list[int] = self._keys[places].tolist()
        self._keys = np.delete(self._keys, places)
        self._rng.shuffle(chosen)
        return chosen

    def _new_key(self, key: int, where: Where) -> int:
        if where == "random":
            return key - key % _SPARSE + 8 + key % 8
        self._next += 1
        return self._next

    def _rows(self, name: str, orders: list[int]) -> pa.Table:
        column = KEYS[name][0]
        wanted = pa.array(orders, pa.int64())
        low, high = pc.min(wanted), pc.max(wanted)
        among = (ds.field(column) >= low) & (ds.field(column) <= high) & ds.field(column).isin(wanted)
        path = self.generated / f"{name}.parquet"
        return ds.dataset(path, schema=plain(pq.read_schema(path).empty_table()).schema).to_table(filter=among)

    def _write(self, name: str, put: pa.Table, gone: pa.Table) -> None:
        for op, table in (("u", put), ("d", gone)):
            self._number += 1
            path = self._folder / name / f"{self._number:05d}.parquet"
            pq.write_table(_records(table, op, self._number), path)


def _records(table: pa.Table, op: str, number: int) -> pa.Table:
    table = plain(table).append_column("op", pa.array([op] * table.num_rows, pa.string()))
    return table.append_column("seq", pa.array([number] * table.num_rows, pa.int32()))


def _parts(
    table: pa.Table, key: str, new: dict[int, int], updated: list[int], removed: list[int]
) -> tuple[pa.Table, pa.Table]:
    """Rows to put (of new orders by their new keys, and of updated ones, their prices changed), and rows to remove."""
    of_new = _of(table, key, list(new))
    keys = pa.array([new[k] for k in of_new[key].to_pylist()], of_new.schema.field(key).type)
    of_new = of_new.set_column(of_new.column_names.index(key), key, keys)
    changed = _of(table, key, updated)
    for price in ("o_totalprice", "l_extendedprice"):
        if price in changed.column_names:
            raised = pc.add(changed[price], pa.scalar(Decimal("1.00"))).cast(changed[price].type)
            changed = changed.set_column(changed.column_names.index(price), price, raised)
    return pa.concat_tables([of_new, changed]), _of(table, key, removed)


def _of(table: pa.Table, key: str, keys: list[int]) -> pa.Table:
    return table.filter(pc.is_in(table[key], pa.array(keys, pa.int64())))
