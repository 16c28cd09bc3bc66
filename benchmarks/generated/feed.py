"""A share of each of TPC-H's tables, inserted, updated and deleted together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from benchmarks.tpch.feed import Feed

_PARTS = 2.5
"""Of the share, as TPC-H's feed counts: as many rows are new as are updated, and half as many are deleted."""
_LISTS = ("region", "nation")


class ShareFeed(Feed):
    """A round changes ``share`` of each table's rows: two fifths of these are new, two fifths updated, a fifth is gone.

    Of regions and nations there are too few for a share: one of each gets another comment.
    """

    def __init__(self, folder: Path, scale: float, share: float, seed: int = 1) -> None:
        super().__init__(folder, scale, share / _PARTS, seed)

    def _changes(self, name: str) -> tuple[tuple[pa.Table, list[int]], pa.Table]:
        if name not in _LISTS:
            return super()._changes(name)
        table, column = self.rows[name], f"{name[0]}_comment"
        row = table.slice(self._rng.randrange(table.num_rows), 1)
        changed = row.set_column(row.column_names.index(column), column, [[f"changed {self._rng.random()}"]])
        return (changed, []), table.slice(0, 0)

    def _changed(self, name: str, table: pa.Table) -> pa.Table:
        """At least one column of the rows is another one."""
        changed = super()._changed(name, table)
        while changed.equals(table):
            changed = super()._changed(name, table)
        return changed
