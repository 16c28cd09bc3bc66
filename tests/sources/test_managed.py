"""Managed frontiers: a source is taken in up to what was declared complete, and each record on its own day."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.cli import main
from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.core.time import parse_time
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.sources.config import parse_source
from tests.sources.test_intake import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400_000
TYPES = {
    "date": lambda day, of_day: f"1970-01-{day + 1:02}",
    "timestamp": lambda day, of_day: f"1970-01-{day + 1:02}T{of_day // 3600000:02}:{of_day // 60000 % 60:02}:00Z",
    "timestamp_ntz": lambda day, of_day: f"1970-01-{day + 1:02}T{of_day // 3600000:02}:{of_day // 60000 % 60:02}:00",
    "bigint": lambda day, of_day: day * DAY + of_day,
}


class Managed(Reader):
    """A source of which somebody says up to which day it is complete."""

    def __init__(self, spark: SparkSession, folder: Path, dtype: str = "bigint", **meta: Any) -> None:
        folder.mkdir(exist_ok=True)
        columns = {"id": "bigint", "at": dtype}
        given = {"envelope": "append", "frontier": "managed", "event_time": "at", **meta}
        super().__init__(spark, folder, columns, **given)
        self.written = 0
        self.dtype = dtype

    def put(self, *events: tuple[int, int, int]) -> None:
        """A file of (id, day, ms of the day)."""
        self.written += 1
        records = [{"id": id, "at": TYPES[self.dtype](day, of_day)} for id, day, of_day in events]
        self.write(f"{self.written:03}.json", records)

    def to(self, day: int) -> Counter[int]:
        """Taken in at the end of the days before; how often each id is there then."""
        self.at(day * DAY)
        return self.ids()

    def at(self, t: int) -> None:
        """Taken in at a time."""
        Database(self.storage.root).advance("s.t", t)
        self.time = t - 1
        self.take()

    def ids(self) -> Counter[int]:
        return Counter(row[0] for row in self.rows().elements())


def test_nothing_is_taken_in_before_it_is_said_to_be_complete(spark: SparkSession, tmp_path: Path) -> None:
    source = Managed(spark, tmp_path, event_time=None)
    source.put((1, 0, 5))
    with pytest.raises(SourceError, match=r"(?s)s\.t.*managed.*dbt-dd advance s\.t --to"):
        source.take()
    assert source.to(1) == Counter([1])
    source.put((2, 0, 6))
    source.time = 9 * DAY
    assert source.take().log.frontiers.last == DAY, "no further than what was declared"
    assert source.ids() == Counter([1])
    assert source.to(2) == Counter([1, 2]), "what comes later belongs to the next time"


@pytest.mark.parametrize("dtype", TYPES)
def test_each_record_on_its_own_day(spark: SparkSession, tmp_path: Path, dtype: str) -> None:
    source = Managed(spark, tmp_path, dtype)
    source.put((1, 0, 0), (2, 1, 0), (3, 1, 3_600_000), (4, 2, 0), (4, 2, 0))
    assert source.to(1) == Counter([1])
    assert source.to(2) == Counter([1, 2, 3])
    source.put((5, 0, 0))
    assert source.ids() == Counter([1, 2, 3]), "late"
    assert source.to(3) == Counter([1, 2, 3, 4, 4, 5])
    assert source.to(4) == Counter([1, 2, 3, 4, 4, 5])
    assert Database(source.storage.root)["s.t"].as_of(2 * DAY).num_rows == 3


@pytest.mark.parametrize("in_frames", [False, True])
def test_a_backfill_equals_daily_runs(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, in_frames: bool
) -> None:
    thresholds = request.getfixturevalue("in_spark") if in_frames else None
    rng = random.Random(in_frames)
    daily = Managed(spark, tmp_path / "daily", thresholds=thresholds)
    backfill = Managed(spark, tmp_path / "backfill", thresholds=thresholds)
    days = [[(rng.randrange(9), rng.randint(day, day + 2), rng.randrange(DAY)) for _ in range(6)] for day in range(4)]
    for events in days:
        backfill.put(*events)
    for day, events in enumerate(days):
        daily.put(*events)
        assert daily.to(day + 1) == backfill.to(day + 1)
    assert daily.to(7) == backfill.to(7) == Counter(id for events in days for id, _, _ in events)


def test_upserts_wait_too(spark: SparkSession, tmp_path: Path) -> None:
    source = Managed(spark, tmp_path, envelope="upsert", key="id", order_by="at")
    source.put((1, 0, 1), (1, 1, 1), (2, 1, 5))
    source.to(1)
    assert source.rows() == Counter({(1, 1): 1})
    source.to(2)
    assert source.rows() == Counter({(1, DAY + 1): 1, (2, DAY + 5): 1})


def test_a_growing_file_and_a_source_that_no_longer_waits(spark: SparkSession, tmp_path: Path) -> None:
    source = Managed(spark, tmp_path, path="in/001.json")
    source.put((1, 0, 0), (2, 5, 0))
    assert source.to(1) == Counter([1])
    with (tmp_path / "in" / "001.json").open("a") as file:
        file.write('{"id": 3, "at": 7}\n{"id": 4, "at": null}\n')
    assert source.to(2) == Counter([1, 3, 4])
    settings = {"path": "in/001.json", "envelope": "append", "frontier": "managed"}
    source.spec = parse_source("s.t", "s.t", settings, {"id": "bigint", "at": "bigint"}, str(tmp_path))
    assert source.to(3) == Counter([1, 2, 3, 4])


def test_an_intake_that_ended_before_its_commit_is_made_up_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Managed(spark, tmp_path)
    source.put((1, 0, 0), (2, 1, 0), (3, 2, 0))
    source.to(1)
    with monkeypatch.context() as patch:
        patch.setattr("dbt_incremental_dd.sources.intake.reached", _end_before_the_commit)
        with pytest.raises(KeyboardInterrupt):
            source.to(2)
    assert source.to(2) == Counter([1, 2])
    assert source.to(3) == Counter([1, 2, 3])


def _end_before_the_commit(name: str) -> None:
    if name == "source: states written":
        raise KeyboardInterrupt


def test_what_waits_waits_through_compaction(spark: SparkSession, tmp_path: Path) -> None:
    source = Managed(spark, tmp_path)
    for id in range(5):
        source.put((id, 3, 0), (7, 3, 0), (7, 3, 0))
        source.at(DAY + id)
    list(compact(LazySession.of(spark), source.storage, retain_history=0))
    assert not source.ids()
    assert source.to(4) == Counter([*range(5), *[7] * 10])


def test_a_source_keeps_the_history_that_it_is_told_to(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"s\.t.*retain_history.*'some'"):
        Managed(spark, tmp_path, retain_history="some")
    source = Managed(spark, tmp_path, retain_history="2 days")
    for day in range(5):
        source.put((day, day, 0))
        source.to(day + 1)
    list(compact(LazySession.of(spark), source.storage))
    collection = Database(source.storage.root)["s.t"]
    assert collection.frontiers.since == 3 * DAY and collection.as_of(3 * DAY).num_rows == 3


def test_wrong_event_times_are_named(spark: SparkSession, tmp_path: Path) -> None:
    for number, (event_time, message) in enumerate(
        (("att", r"s\.t.*event_time is 'att'"), ("CAST(at AS STRING)", r"s\.t.*event_time.*of type string"))
    ):
        source = Managed(spark, tmp_path / str(number), event_time=event_time)
        source.put((1, 0, 0))
        with pytest.raises(ConfigError, match=message):
            source.to(1)
    for meta in ({"envelope": "snapshot"}, {"path": None}):
        with pytest.raises(ConfigError, match="event_time"):
            Managed(spark, tmp_path, **meta)


def test_the_command_advances_and_refuses(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Managed(spark, tmp_path)
    root = ["--state-root", source.storage.root, "advance"]
    assert main([*root, "s.T", "--to", "1970-01-02"]) == 0
    source.put((1, 0, 0))
    source.take()
    assert main([*root, "t", "--to", "1970-01-03"]) == 0
    assert "s.t is complete up to 1970-01-03 00:00:00" in capsys.readouterr().out
    assert main([*root, "t", "--to", "1970-01-02"]) == 1
    assert "complete up to 1970-01-03 00:00:00 already" in capsys.readouterr().err
    assert Database(source.storage.root).advance("s.t", "1970-01-02") == parse_time("1970-01-03")
    (tmp_path / "other").mkdir()
    other = Reader(spark, tmp_path / "other", envelope="append")
    other.write("1.json", [])
    other.take()
    assert main(["--state-root", other.storage.root, "advance", "s.t", "--to", "1970-01-02"]) == 1
    assert "advances by itself" in capsys.readouterr().err
    assert main([*root, "nothing", "--to", "1970-01-02"]) == 1


def test_a_source_that_is_not_known_beside_others_is_told(spark: SparkSession, tmp_path: Path) -> None:
    source = Managed(spark, tmp_path)
    source.put((1, 0, 0))
    source.to(1)
    database = Database(source.storage.root)
    with pytest.raises(ConfigError, match=r"(?s)s\.tt is no source.*s\.t.*--first"):
        database.advance("s.tt", DAY)
    assert database.advance("s.new", DAY, first=True) == DAY
    assert database.advance("s.new", 2 * DAY) == 2 * DAY


def test_records_wait_for_their_time_where_frontiers_advance_by_themselves(spark: SparkSession, tmp_path: Path) -> None:
    source = Managed(spark, tmp_path, frontier="auto")
    source.put((1, 0, 0), (2, 1, 0))
    source.time = DAY - 1
    source.take()
    assert source.ids() == Counter([1])
    source.time = 2 * DAY
    source.take()
    assert source.ids() == Counter([1, 2])
