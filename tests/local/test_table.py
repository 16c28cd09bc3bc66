"""Tables on the driver: summed and looked up, by their columns' equality."""

from __future__ import annotations

import datetime
import random

import numpy as np
import pyarrow as pa
import pytest

from dbt_incremental_dd.local.table import consolidate_arrow, group_numbers, lookup, member_mask, places


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


LONGS = [None, 0, 1, -1, 7, 2**63 - 1, -(2**63), 2**62, -(2**62)]
NUMBERS = {
    "long": (pa.int64(), LONGS),
    "few": (pa.int64(), [None, *range(5)]),
    "int": (pa.int32(), [None, 2**31 - 1, -(2**31), 0, 5]),
    "day": (pa.date32(), [None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(2020, 1, 1)]),
    "text": (pa.string(), [None, "", "a", "b"]),
    "flag": (pa.bool_(), [None, True, False]),
    "none": (pa.int64(), [None]),
}


@pytest.mark.parametrize(
    "columns", [["long"], ["few", "day"], ["long", "int", "long2"], ["day", "text", "long"], ["none", "flag", "few"]]
)
@pytest.mark.parametrize("rows", [0, 3, 80])
def test_rows_are_found_by_several_columns(columns: list[str], rows: int) -> None:
    rng = random.Random(f"{columns}{rows}")
    kinds = [NUMBERS[name.rstrip("2")] for name in columns]
    keys = [tuple(rng.choice(values) for _, values in kinds) for _ in range(2 * rows)]
    here, there = keys[:rows], list(dict.fromkeys(keys[rows:]))

    def made(part: list[tuple[object, ...]]) -> pa.Table:
        arrays = [pa.array([row[i] for row in part], type) for i, (type, _) in enumerate(kinds)]
        return pa.table(arrays, columns)

    known = {key: place for place, key in enumerate(there)}
    assert places(made(here), made(there), columns).to_pylist() == [known.get(key) for key in here]
    assert member_mask(made(here), made(there), columns).to_pylist() == [key in known for key in here]
    first = {key: number for number, key in enumerate(dict.fromkeys(here))}
    assert group_numbers(made(here), columns).to_pylist() == [first[key] for key in here]
