"""Intakes in pieces: the rows of the law of upserts, whatever the cuts, and nothing left where it ends early."""

from __future__ import annotations

import datetime
import logging
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.local.whole_groups import whole_groups
from dbt_incremental_dd.sources import updates
from dbt_incremental_dd.sources.connectors.files import connector, pieces
from tests.sources.test_intake import Reader
from tests.sources.test_upsert_law import COLUMNS, NAMES, SETTINGS, Model, record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("v", pa.string()),
        ("pos", pa.int32()),
        ("at", pa.date32()),
        ("flag", pa.bool_()),
    ]
)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few rows each; no records are few."""
    monkeypatch.setattr(pieces, "ROWS_PER_FILE", 7)
    monkeypatch.setattr(pieces, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(connector, "read_few", lambda *_: None)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pieces that are taken in, by their numbers of records."""
    found: list[int] = []
    cut = pieces.whole_groups

    def noted(*given: Any) -> Any:
        for table in cut(*given):
            found.append(table.num_rows)
            yield table

    monkeypatch.setattr(pieces, "whole_groups", noted)
    return found


def write(reader: Reader, name: str, records: list[dict[str, Any]]) -> list[tuple[str, tuple[Any, ...]]]:
    """A file of the source; its rows, each with the file's name."""
    rows = [{**one, "at": one["at"] and datetime.date.fromisoformat(one["at"])} for one in records]
    pq.write_table(pa.Table.from_pylist(rows, TYPES), reader.folder / "in" / name)
    return [(name, tuple(row[column] for column in NAMES)) for row in rows]


def plain(rows: Any) -> Counter[tuple[str | None, ...]]:
    """Rows that can be compared whatever their types are called."""
    return Counter(tuple(None if v is None else str(v) for v in row) for row in rows)


@pytest.mark.parametrize("title", SETTINGS)
def test_the_law_holds_in_pieces(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, parts: list[int], title: str
) -> None:
    rng, model = random.Random(title), Model(SETTINGS[title])
    reader = Reader(spark, tmp_path, COLUMNS, format="parquet", envelope="upsert", **SETTINGS[title])
    for round in range(4):  # the later ones beside stored rows, and tombstones, that several pieces have left
        names = [f"{round}-{i}.parquet" for i in range(3)]
        model.take([row for name in names for row in write(reader, name, [record(rng) for _ in range(25)])])
        parts.clear()
        with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.relation"):
            reader.take()
        assert not caplog.records, "nothing was left to Spark that is the driver's"
        assert len(parts) > 1 and sum(parts) == 75
        assert plain(reader.rows().elements()) == plain(model.rows.values()), round


def test_appended_records_keep_their_multiplicity(spark: SparkSession, tmp_path: Path, parts: list[int]) -> None:
    rng = random.Random(1)
    reader = Reader(spark, tmp_path, COLUMNS, format="parquet", envelope="append")
    rows = [row for i in range(2) for row in write(reader, f"{i}.parquet", [record(rng) for _ in range(30)] * 2)]
    taken = reader.take()
    assert taken.rows == 120 and len(parts) > 2
    assert plain(reader.rows().elements()) == plain(row for _, row in rows)
    rows += write(reader, "2.parquet", [record(rng) for _ in range(30)])
    assert reader.take().rows == 30 and len(parts) > 4
    assert plain(reader.rows().elements()) == plain(row for _, row in rows)


def test_a_key_of_nothing_is_an_error_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(1)
    reader = Reader(spark, tmp_path, COLUMNS, format="parquet", envelope="upsert", key=["id"])
    write(reader, "0.parquet", [record(rng) for _ in range(50)] + [{**record(rng), "id": None}])
    with pytest.raises(SourceError, match=r"key column id is NULL in 1 new record"):
        reader.take()
    assert not list(tmp_path.glob("state/collections/**/*.parquet"))
    assert reader.storage.collection("s.t").log() is None


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("failing", ["a piece", "reading", "a condition of Spark's"])
def test_what_ends_early_is_read_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, is_first: bool
) -> None:
    rng, model = random.Random(1), Model({"key": ["id"], "order_by": ["pos"], "deleted_when": "v = 'x'"})
    condition = "v RLIKE '^x' OR v ILIKE 'X'" if failing == "a condition of Spark's" else "v = 'x'"
    settings: dict[str, Any] = {"key": ["id"], "order_by": ["pos"], "deleted_when": condition}
    reader = Reader(spark, tmp_path, COLUMNS, format="parquet", envelope="upsert", **settings)
    model.take(write(reader, "0.parquet", [record(rng) for _ in range(60)]))
    if not is_first:
        reader.take()
        model.take(write(reader, "1.parquet", [record(rng) for _ in range(60)]))
    made, apply = [], updates.write

    def broken(*given: Any, **named: Any) -> Any:
        made.append(1)
        if failing == "a piece" and len(made) == 3:
            raise OSError("no space")
        return apply(*given, **named)

    def unread(*_: Any) -> Any:
        yield pa.RecordBatch.from_pylist([{"id": 1}])

    monkeypatch.setattr(updates, "write", broken)
    if failing == "reading":
        monkeypatch.setattr(pieces, "_batches", unread)
    reader.take()
    assert plain(reader.rows().elements()) == plain(model.rows.values())
    log = reader.storage.collection("s.t").log()
    assert log is not None
    stored = {path.name for path in (tmp_path / "state").glob("collections/*/trace/**/*.parquet")}
    assert stored == {Path(file.path).name for file in log.files}


@pytest.mark.parametrize("date", ["0001-01-01", "1500-01-01", "far"])
def test_dates_of_other_calendars_are_sparks(spark: SparkSession, tmp_path: Path, parts: list[int], date: str) -> None:
    reader = Reader(spark, tmp_path, {"id": "bigint", "at": "date"}, format="parquet", envelope="upsert", key=["id"])
    days = 3_000_000 if date == "far" else (datetime.date.fromisoformat(date) - datetime.date(1970, 1, 1)).days
    table = pa.table({"id": pa.array(range(20), pa.int64()), "at": pa.array([days] * 20, pa.int32()).cast(pa.date32())})
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    if date == "far":
        with pytest.raises(SourceError, match="outside the years"):
            reader.take()
    else:
        reader.take()
    assert not parts


def test_too_many_bytes_are_sparks(spark: SparkSession, tmp_path: Path, parts: list[int]) -> None:
    rng = random.Random(1)
    reader = Reader(
        spark, tmp_path, COLUMNS, thresholds=Thresholds(sorted_bytes=100), format="parquet", envelope="append"
    )
    rows = write(reader, "0.parquet", [record(rng) for _ in range(30)])
    reader.take()
    assert not parts and plain(reader.rows().elements()) == plain(row for _, row in rows)


@pytest.mark.parametrize("bound", ["found_rows", "probed_rows"])
def test_what_the_driver_may_not_find_is_sparks(
    spark: SparkSession, tmp_path: Path, parts: list[int], bound: str
) -> None:
    rng, model, settings = random.Random(1), Model({"key": ["id"]}), {"envelope": "upsert", "key": ["id"]}
    reader = Reader(spark, tmp_path, COLUMNS, thresholds=Thresholds(**{bound: 1}), format="parquet", **settings)
    for i in range(2):
        parts.clear()
        model.take(write(reader, f"{i}.parquet", [record(rng) for _ in range(30)]))
        reader.take()
        assert plain(reader.rows().elements()) == plain(model.rows.values())
        assert bool(parts) == (i == 0), "nothing is sorted in vain"


def test_no_group_is_cut() -> None:
    rng = random.Random(1)
    keys = sorted(((rng.choice([None, 1, 2, 3]), rng.choice("ab")) for _ in range(60)), key=lambda k: (k[0] or 0, k[1]))
    table = pa.table({"a": [a for a, _ in keys], "b": [b for _, b in keys]})
    for size in (1, 4, 60):
        found = list(whole_groups((table.slice(at, size) for at in range(0, 60, size)), ["a", "b"]))
        groups = [{(row["a"], row["b"]) for row in part.to_pylist()} for part in found]
        assert pa.concat_tables(found).equals(table)
        assert sum(map(len, groups)) == len(set(keys))
    assert list(whole_groups([table.slice(0, 0)], ["a"])) == []
