"""Small files become few, whatever comes; what is readable stays the same."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.trace import tiers
from dbt_incremental_dd.trace.compact import merge_recent
from dbt_incremental_dd.trace.tiers import FAN, has_outgrown, mergeable
from tests.subscribe.stored import Rows, Stored, rows_of
from tests.subscribe.test_subscription import STEPS, write


def file(number: int, rows: int) -> DataFile:
    return DataFile(f"{number}.parquet", rows, rows * 10, number, number, 1, 1)


@pytest.mark.parametrize("most", [1, 10, 300])
def test_files_stay_few_and_rows_are_written_a_few_times(most: int) -> None:
    rng, files, written, rows = random.Random(most), [], 0, 0
    for number in range(20_000):
        came = rng.randint(1, most)
        rows += came
        merged = mergeable(files)
        size = came + sum(one.rows for one in merged)
        files = [one for one in files if one not in merged] + [file(number, size)]
        written += size
    large = [one for one in files if one.rows >= FAN**tiers.TIERS]
    assert len(files) - len(large) <= FAN * tiers.TIERS and sum(one.rows for one in files) == rows
    assert written <= (tiers.TIERS + 1) * rows * 1.2


def test_nothing_is_merged_before_a_tier_is_full() -> None:
    assert mergeable([file(n, 1) for n in range(FAN - 1)]) == ()
    assert len(mergeable([file(n, 1) for n in range(FAN)])) == FAN
    assert mergeable([file(n, FAN**tiers.TIERS) for n in range(100)]) == ()
    assert len(mergeable([*(file(n, 20) for n in range(FAN)), file(99, 1)])) == FAN + 1


def test_what_changes_most_rows_each_time_stays_in_proportion_to_them() -> None:
    """Each batch retracts all rows and inserts others; a merge leaves the rows alone."""
    rows, files, written = 60_000, [file(0, 60_000)], 0
    for number in range(1, 100):
        merged = files if has_outgrown(files) else []
        files = [file(number, rows)] if merged else [*files, file(number, 2 * rows)]
        written += files[-1].rows
        assert sum(one.rows for one in files) <= 5 * rows
    assert written <= 2 * 99 * rows


def test_little_is_left_to_its_tiers() -> None:
    assert not has_outgrown([])
    assert not has_outgrown([file(0, 10), *(file(n, 1_000) for n in range(1, 99))])
    assert not has_outgrown([file(0, 1_000_000), file(1, 999_999)])
    assert has_outgrown([file(0, 500_000), file(0, 500_000), file(1, 500_000), file(2, 500_000)])


@settings(max_examples=25)
@given(STEPS, st.data())
def test_every_time_reads_as_before(
    steps: list[list[tuple[int, list[tuple[int, str | None]], int]]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiers, "FAN", 2)
        stored, held, upper = Stored(Path(folder)), Counter(), 10
        stored.commit({}, upper)
        was: dict[int, Rows] = {}
        for step in steps:
            upper = write(stored, held, step, upper)
            was[upper - 1] = Counter(+held)
            if data.draw(st.booleans(), "merged"):
                log = stored.place.log()
                assert log is not None
                merged = merge_recent(stored.place.storage, log, ("k",))
                assert len(merged.files) <= len(log.files) and merged.frontiers == log.frontiers
        assert {t: rows_of(stored.collection.as_of(t)) for t in was} == was
        times = sorted(was)
        for after, up_to in pairwise(times):
            change = Counter(was[after])
            change.update(rows_in(stored.collection.changes(after, up_to)))
            assert +change == was[up_to]


def rows_in(table: pa.Table) -> Rows:
    """With their diffs, also below 0."""
    found: Rows = Counter()
    for row in table.to_pylist():
        found[row["k"], row["v"]] += row["dd_diff"]
    return found
