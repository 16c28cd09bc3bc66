"""Maps are equal whatever the order of their entries, also where DuckDB sums."""

from __future__ import annotations

import pyarrow as pa

from dbt_incremental_dd.trace.maps import by_key
from dbt_incremental_dd.trace.sums import sums

MAP = pa.map_(pa.string(), pa.int64())
ROWS = [[("b", 1), ("a", None)], None, [], [("a", None), ("b", 1)], [("a", 2), ("b", 1)], None]


def test_entries_are_in_the_order_of_their_keys() -> None:
    plain = pa.array(ROWS, MAP)
    deep = pa.array([{"l": [row, row]} if row is not None else None for row in ROWS], pa.struct([("l", pa.list_(MAP))]))
    within = pa.array([[("k", row)] for row in ROWS], pa.map_(pa.string(), MAP))
    table = pa.table({"plain": plain, "deep": deep, "within": within, "n": range(6)}).slice(0, 6)
    found = by_key(table.slice(1))
    ordered = [None if row is None else sorted(row) for row in ROWS[1:]]
    assert found["plain"].to_pylist() == ordered
    assert found["deep"].to_pylist() == [None if row is None else {"l": [row, row]} for row in ordered]
    assert found["within"].to_pylist() == [[("k", row)] for row in ordered]
    assert found.schema == table.schema and found["n"].to_pylist() == [1, 2, 3, 4, 5]


def test_equal_maps_cancel_out() -> None:
    updates = pa.table({"m": pa.array(ROWS, MAP), "dd_diff": pa.array([1, 1, 1, -1, 1, 1], pa.int64())})
    found = sums(updates, ("dd_diff",))
    counts = sorted((repr(row["m"]), row["dd_diff"]) for row in found.to_pylist())
    assert counts == [("None", 2), ("[('a', 2), ('b', 1)]", 1), ("[('a', None), ('b', 1)]", 0), ("[]", 1)]


def test_no_rows() -> None:
    table = pa.table({"m": pa.array([], MAP)})
    assert by_key(table).schema == table.schema and by_key(table).num_rows == 0
