"""When a source is complete: each condition, on files of a test's own."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_differential.conditions import (
    CallableCondition,
    Condition,
    EventTimes,
    FilesExist,
    FileTimes,
    Query,
    condition,
)
from airflow_differential.times import milliseconds, text, utc

DAY = milliseconds("2013-06-02T00:00:00Z")


def says_so(up_to: int) -> bool:
    """A function of the user's."""
    return up_to == DAY


def again(one: Condition) -> Condition:
    """As the triggerer makes it."""
    made = condition(one.serialize())
    assert made == one
    return made


def test_files(tmp_path: Path) -> None:
    wanted = again(FilesExist(f"{tmp_path}/day=2013-06-01/**/*.json", at_least=2))
    assert not wanted.holds(DAY)
    (tmp_path / "day=2013-06-01" / "hour").mkdir(parents=True)
    for name in ("1.json", "hour/2.json"):
        assert not wanted.holds(DAY)
        (tmp_path / "day=2013-06-01" / name).touch()
    assert wanted.holds(DAY)


@pytest.mark.parametrize("pattern, name", [("%Y-%m-%d", "2013-06-{}.csv"), ("%Y%m%d%H", "x_201306{}00.csv")])
def test_times_in_names(tmp_path: Path, pattern: str, name: str) -> None:
    wanted = again(FileTimes(f"{tmp_path}/*.csv", pattern))
    (tmp_path / name.format("01")).touch()
    (tmp_path / "others.csv").touch()
    assert not wanted.holds(DAY), "the day may go on"
    (tmp_path / name.format("02")).touch()
    assert wanted.holds(DAY)
    assert not wanted.holds(DAY + 1)


def test_times_of_events(tmp_path: Path) -> None:
    wanted = again(EventTimes(str(tmp_path), "at"))
    assert not wanted.holds(DAY), "there are no files"
    for number, at in enumerate(("2013-06-01T23:59:59Z", "2013-06-02T00:00:00Z")):
        assert not wanted.holds(DAY)
        pq.write_table(
            pa.table({"at": pa.array([utc(at) * 1000], pa.timestamp("us", "UTC"))}),
            tmp_path / f"{number}.parquet",
        )
    assert wanted.holds(DAY)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"ms": 1370131200000}\n')
    assert again(EventTimes(f"{tmp_path}/in/*.json", "ms", "json")).holds(DAY)
    with pytest.raises(ValueError, match="parquet, json, csv"):
        EventTimes(str(tmp_path), "at", "orc").holds(DAY)


def test_queries(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a\n1\n2\n")
    assert again(Query(f"SELECT count(*) >= 2 FROM read_csv('{tmp_path}/*.csv')")).holds(DAY)
    assert not Query(f"SELECT count(*) > 2 FROM read_csv('{tmp_path}/*.csv')").holds(DAY)
    assert not Query("SELECT 1 WHERE false").holds(DAY)


def test_functions() -> None:
    wanted = again(CallableCondition(says_so))
    assert wanted.holds(DAY) and not wanted.holds(DAY + 1)
    with pytest.raises(ValueError, match=r"nowhere\.at_all.*cannot be imported"):
        CallableCondition("nowhere.at_all").holds(DAY)


def test_times() -> None:
    assert milliseconds("2013-06-02T02:00:00+02:00") == milliseconds(str(DAY)) == DAY
    assert milliseconds(datetime(2013, 6, 2, tzinfo=UTC)) == DAY
    assert text(DAY) == "2013-06-02 00:00:00"
    for wrong in ("soon", "", None):
        with pytest.raises(ValueError, match="is not a time"):
            milliseconds(wrong)
    for naive in ("2013-06-02T00:00:00", "2013-06-02", datetime(2013, 6, 2)):
        with pytest.raises(ValueError, match="names no time zone"):
            milliseconds(naive)
