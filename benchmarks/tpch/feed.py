"""TPC-H's tables as feeds of Parquet files: a first load, then rounds of inserts, updates and deletes in every table.

A record has the table's columns and ``op``: ``u`` puts the row of its key, ``d`` removes it. New orders come with
their lines, and orders go with theirs, as in the benchmark's refresh functions RF1 and RF2.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
_NAMED_IN_QUERIES = ("r_name", "n_name")


class Feed:
    """``rows`` are the tables as they are now."""

    def __init__(self, folder: Path, scale: float, share: float = 0.001, seed: int = 1) -> None:
        self.folder = folder
        self._share = share
        self._rng = random.Random(seed)
        shutil.rmtree(folder, ignore_errors=True)
        made = folder / "generated"
        generate(made, scale)
        self.rows = {name: plain(pq.read_table(made / f"{name}.parquet")) for name in KEYS}
        shutil.rmtree(made)
        for name, table in self.rows.items():
            self._write(name, 0, table, "u")

    def advance(self, round: int) -> dict[str, int]:
        """A round of changes; the number of records by table."""
        counts = {}
        new_orders: dict[int, int] = {}
        gone_orders: list[int] = []
        for name in KEYS:
            put, gone = self._lines(new_orders, gone_orders) if name == "lineitem" else self._changes(name)
            if name == "orders":
                new_orders = dict(zip(put[1], put[0]["o_orderkey"].to_pylist()[-len(put[1]) :], strict=True))
                gone_orders = gone["o_orderkey"].to_pylist()
            self._apply(name, put[0], gone)
            self._write(name, 2 * round - 1, put[0], "u")
            self._write(name, 2 * round, gone, "d")
            counts[name] = put[0].num_rows + gone.num_rows
        return counts

    def _some(self, table: pa.Table) -> list[int]:
        return self._rng.sample(range(table.num_rows), max(1, int(table.num_rows * self._share)))

    def _changes(self, name: str) -> tuple[tuple[pa.Table, list[int]], pa.Table]:
        """Changed rows followed by new ones, the first key of what the new ones were copied from, and rows gone."""
        table, key = self.rows[name], KEYS[name][0]
        copied = table.take(self._some(table))
        first = pc.max(table[key]).as_py() + 1
        fresh = _set(copied, key, list(range(first, first + copied.num_rows)))
        changed = self._changed(name, table.take(self._some(table)))
        gone = table.take(self._some(table)[: max(1, copied.num_rows // 2)])
        gone = gone if name not in ("region", "nation") else gone.slice(0, 0 if table.num_rows <= 4 else 1)
        return (pa.concat_tables([changed, fresh]), copied[key].to_pylist()), gone

    def _lines(self, new: dict[int, int], gone: list[int]) -> tuple[tuple[pa.Table, list[int]], pa.Table]:
        """The lines of new orders, changed lines, and the lines of orders that are gone."""
        table = self.rows["lineitem"]
        copied = table.filter(pc.is_in(table["l_orderkey"], pa.array(list(new), pa.int64())))
        fresh = _set(copied, "l_orderkey", [new[key] for key in copied["l_orderkey"].to_pylist()])
        changed = self._changed("lineitem", table.take(self._some(table)))
        removed = table.filter(pc.is_in(table["l_orderkey"], pa.array(gone, pa.int64())))
        return (pa.concat_tables([changed, fresh]), []), removed

    def _changed(self, name: str, table: pa.Table) -> pa.Table:
        """The rows with a third of their other columns taken from rows elsewhere in the table."""
        everything = self.rows[name]
        for column in table.column_names:
            if column not in (*KEYS[name], *_NAMED_IN_QUERIES) and self._rng.random() < 0.34:
                rows = [self._rng.randrange(everything.num_rows) for _ in range(table.num_rows)]
                other = everything[column].take(rows)
                table = table.set_column(table.column_names.index(column), column, other)
        return table

    def _apply(self, name: str, put: pa.Table, gone: pa.Table) -> None:
        keys = KEYS[name]
        away = {tuple(row.values()) for part in (put, gone) for row in part.select(list(keys)).to_pylist()}
        table = self.rows[name]
        present = zip(*(table[key].to_pylist() for key in keys), strict=True)
        kept = table.filter(pa.array([key not in away for key in present], pa.bool_()))
        dead = {tuple(row.values()) for row in gone.select(list(keys)).to_pylist()}
        alive = [tuple(row.values()) not in dead for row in put.select(list(keys)).to_pylist()]
        self.rows[name] = pa.concat_tables([kept, put.filter(pa.array(alive, pa.bool_()))]).combine_chunks()

    def _write(self, name: str, number: int, table: pa.Table, op: str) -> None:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        if table.num_rows:
            table = table.append_column("op", pa.array([op] * table.num_rows, pa.string()))
            table = table.append_column("seq", pa.array([number] * table.num_rows, pa.int32()))
            pq.write_table(table, folder / f"{number:05d}.parquet")


def generate(folder: Path, scale: float) -> None:
    """TPC-H's tables as Parquet files of their names."""
    tool = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([str(tool), "parquet", "-s", str(scale), f"--output-dir={folder}"], check=True)


def plain(table: pa.Table) -> pa.Table:
    """The table with ordinary strings instead of string views."""
    fields = [(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks()


def _set(table: pa.Table, column: str, values: list[int]) -> pa.Table:
    index = table.column_names.index(column)
    return table.set_column(index, column, pa.array(values, table.schema.field(column).type))
