"""Tables on the driver: summed and looked up, by their columns' equality."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dbt_incremental_dd.local import table as on_driver
from dbt_incremental_dd.local.table import consolidate_arrow, group_numbers, lookup, member_mask, places
from dbt_incremental_dd.trace.sums import sums


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


MOMENT = datetime.datetime(2024, 2, 28, 1, 2, 3, 4)
KINDS = {
    **NUMBERS,
    "double": (pa.float64(), [None, 0.0, -0.0, float("nan"), 1.5]),
    "float": (pa.float32(), [None, 0.0, -0.0, float("nan"), 1.5]),
    "decimal": (pa.decimal128(38, 2), [None, Decimal(10) ** 35, Decimal("-0.01"), Decimal(0)]),
    "binary": (pa.binary(), [None, b"", b"\xff\x00"]),
    "moment": (pa.timestamp("us", "UTC"), [None, MOMENT, MOMENT.replace(year=1)]),
    "clock": (pa.timestamp("us"), [None, MOMENT, MOMENT.replace(year=9999)]),
    "letters": (pa.string(), [None, "\u00fc", "u\u0308"]),
}


@pytest.mark.parametrize("name", KINDS)
def test_many_rows_are_summed_as_few_are(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """By DuckDB, whatever their types."""
    rng = random.Random(name)
    kind, values = KINDS[name]
    totals = [Decimal("1.5"), Decimal("-1.5")]
    rows = pa.table(
        {
            "v": pa.array([rng.choice(values) for _ in range(300)], kind),
            "dd_diff": pa.array([rng.choice([1, -1]) for _ in range(300)]),
            "total": pa.array([rng.choice(totals) for _ in range(300)], pa.decimal128(38, 1)),
        }
    )
    few = consolidate_arrow(rows, ["dd_diff", "total"])
    summed: list[pa.Table] = []

    def noted(*given: Any) -> pa.Table:
        summed.append(sums(*given))
        return summed[-1]

    monkeypatch.setattr(on_driver, "sums", noted)
    monkeypatch.setattr(on_driver, "_MANY", 1)
    many = consolidate_arrow(rows, ["dd_diff", "total"])
    assert summed and many.schema == few.schema
    assert sorted(map(repr, many.to_pylist())) == sorted(map(repr, few.to_pylist()))


def test_text_that_is_not_utf_8_is_summed_by_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_driver, "_MANY", 1)
    texts = pa.array([b"\xff", b"a", b"\xff"]).view(pa.string())
    found = consolidate_arrow(pa.table({"v": texts, "dd_diff": [1, 1, 1]}), ["dd_diff"])
    assert sorted(zip(found["v"].cast(pa.binary()).to_pylist(), found["dd_diff"].to_pylist(), strict=True)) == [
        (b"a", 1),
        (b"\xff", 2),
    ]
