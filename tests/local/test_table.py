"""Tables on the driver: summed and looked up, by their columns' equality."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from dbt_incremental_dd.local.table import consolidate_arrow, lookup


def table(*chunks: list[tuple[int | None, str | None]]) -> pa.Table:
    """A table of these chunks, empty ones included."""
    types = pa.schema([("k", pa.int64()), ("v", pa.string())])
    batches = [pa.record_batch([[k for k, _ in rows], [v for _, v in rows]], schema=types) for rows in chunks]
    return pa.Table.from_batches(batches, types)


def test_equal_rows_are_summed_and_zeros_dropped() -> None:
    rows = table([(1, "a"), (None, None), (2, "b")], [(1, "a"), (None, None), (2, "b")])
    rows = rows.append_column("dd_diff", pa.array([1, 1, 1, 2, 1, -1]))
    found = consolidate_arrow(rows, ["dd_diff"])
    assert sorted(map(repr, found.to_pylist())) == [
        "{'k': 1, 'v': 'a', 'dd_diff': 3}",
        "{'k': None, 'v': None, 'dd_diff': 2}",
    ]


def test_floats_are_equal_where_spark_says_so() -> None:
    nan, other_nan = np.array([0x7FF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)
    rows = pa.table({"v": pa.array([0.0, -0.0, nan, other_nan, None, None, 1.5]), "dd_diff": [1, 1, 1, -1, 1, 1, -2]})
    found = consolidate_arrow(rows, ["dd_diff"])
    assert sorted(map(repr, found.to_pylist())) == [
        "{'v': 0.0, 'dd_diff': 2}",
        "{'v': 1.5, 'dd_diff': -2}",
        "{'v': None, 'dd_diff': 2}",
    ]


def test_lookup_finds_null_keys_and_leaves_gaps() -> None:
    found = lookup(table([(2, "x"), (None, "y"), (9, "z")]), table([(None, "n"), (2, "b")]), ["k"], ["v"])
    assert found["v"].to_pylist() == ["b", "n", None]
