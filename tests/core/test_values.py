"""Times, durations, frontiers and the choice of files: values, without Spark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import ConfigError, FrontierError
from dbt_incremental_dd.core.frontier import Frontiers
from dbt_incremental_dd.core.time import format_time, parse_duration, parse_time
from dbt_incremental_dd.trace.files import between, inserts_only, matching


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2013-06-01", 1370044800000),
        ("2013-06-01T00:00:00Z", 1370044800000),
        ("2013-06-01 02:00:00+02:00", 1370044800000),
        ("1370044800000", 1370044800000),
        (1370044800000, 1370044800000),
    ],
)
def test_parse_time(text: str | int, ms: int) -> None:
    assert parse_time(text) == ms


@pytest.mark.parametrize("text", ["soon", "", "1969-12-31", True])
def test_what_is_no_time_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=str(text)):
        parse_time(text)


@given(st.integers(0, 4_000_000_000_000))
def test_format_is_parsed_back(t: int) -> None:
    assert parse_time(format_time(t)) == t


@pytest.mark.parametrize(
    ("text", "ms"), [("1 day", 86_400_000), ("90 minutes", 5_400_000), ("36h", 129_600_000), (5, 5)]
)
def test_parse_duration(text: str | int, ms: int) -> None:
    assert parse_duration(text) == ms


def test_frontiers_name_the_range() -> None:
    frontiers = Frontiers(since=1000, upper=2001)
    assert frontiers.readable(1000) and frontiers.readable(2000) and not frontiers.readable(2001)
    frontiers.require(2000, "m")
    with pytest.raises(FrontierError, match=r"m .* since = 1970-01-01 00:00:01"):
        frontiers.require(999, "m")
    with pytest.raises(FrontierError, match="final only up to 1970-01-01 00:00:02"):
        frontiers.require(2001, "m")
    with pytest.raises(FrontierError, match="go back"):
        frontiers.require_advance(2000, "m")


def file(first: int, last: int, low: int = 0, high: int = 9, min_diff: int = 1) -> DataFile:
    """A file of those bounds."""
    return DataFile("p", 1, 1, first, last, min_diff, 1, {"k": (low, high)})


def test_files_are_chosen_by_time_and_key() -> None:
    files = (file(1, 1, 0, 9), file(2, 3, 20, 29), file(4, 4, 10, 19, -1))
    assert between(files, 1, 3) == files[1:2]
    assert between(files, -1, 1) == files[:1]
    assert matching(files, {"k": [5, 25]}) == files[:2]
    assert matching(files, {"k": [15]}) == files[2:]
    assert matching(files, {"other": [15]}) == files
    assert matching(files, {"k": ["a string"]}) == files
    assert inserts_only(files[:2]) and not inserts_only(files)


@given(st.integers(0, 50), st.integers(0, 50), st.lists(st.integers(0, 60), max_size=5).map(sorted))
def test_no_file_that_may_match_is_left_out(low: int, width: int, values: list[int]) -> None:
    chosen = matching((file(1, 1, low, low + width),), {"k": values})
    assert bool(chosen) == any(low <= value <= low + width for value in values)
