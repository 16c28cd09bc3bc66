"""Indexes of pages: what is found through them is what a filter of the whole file finds, and little is read."""

from __future__ import annotations

import datetime
import logging
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import fs as pafs

from dbt_incremental_dd.core import types
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.types import DATE, LONG, STRING, TIMESTAMP, Array, Field, Struct
from dbt_incremental_dd.parquet import page_reader
from dbt_incremental_dd.parquet.page_index import SUFFIX, open_pages
from dbt_incremental_dd.parquet.page_reader import probe_pages
from dbt_incremental_dd.parquet.thrift import Items, decode, encode
from dbt_incremental_dd.trace import write
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.driver_reader import find_rows, searched_rows
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = pafs.LocalFileSystem()
PLACE = Struct((Field("seq", LONG),))
TYPES = {"k": LONG, "s": STRING, "d": DATE, "amount": types.Decimal(20, 2), "p": PLACE, "t": TIMESTAMP}
SCHEMA = Schema(tuple(Column(name, dtype) for name, dtype in TYPES.items()))
DAY = datetime.date(1969, 12, 30)
LONG_TEXT = "the same first bytes of all these texts, "


def table_of(numbers: list[int | None]) -> pa.Table:
    """Rows sorted by ``k``, and by ``d`` and ``s`` where the numbers have as many digits."""
    data: dict[str, list[Any]] = {
        "k": numbers,
        "s": [None if n is None else f"{n:04}-{'é' * (n % 3)}" for n in numbers],
        "d": [None if n is None else DAY + datetime.timedelta(n) for n in numbers],
        "amount": [Decimal(i % 7) / 4 if i % 5 else None for i in range(len(numbers))],
        "p": [{"seq": i if i % 3 else None} if i % 4 else None for i in range(len(numbers))],
        "t": [datetime.datetime(2020, 1, 1 + i % 9, tzinfo=datetime.UTC) for i in range(len(numbers))],
    }
    return pa.table({name: pa.array(values, arrow_type(TYPES[name])) for name, values in data.items()})


def written(folder: Path, table: pa.Table, schema: Schema = SCHEMA, bounded: tuple[str, ...] = ("k", "s", "d")) -> str:
    storage = Storage(str(folder))
    return f"{folder}/{write.write_arrow(storage, storage.root, table, schema, bounded).path}"


def found(path: str, schema: pa.Schema, keys: dict[str, list[Any]]) -> pa.Table | None:
    """None where the pages are of no use."""
    tables, others = probe_pages(LOCAL, [path], schema, keys)
    if others:
        return None
    return pa.concat_tables(tables) if tables else schema.empty_table()


def filtered(table: pa.Table, keys: dict[str, list[Any]]) -> pa.Table:
    for name, values in keys.items():
        table = table.filter(pc.is_in(table[name], value_set=pa.array(values, table.schema.field(name).type)))
    return table


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "ROWS_PER_GROUP", 40)
    monkeypatch.setattr(page_reader, "_LARGEST_SHARE", 1.0)
    monkeypatch.setattr(write, "_PAGED", {**write._PAGED, "max_rows_per_page": 7})


@given(st.lists(st.integers(0, 300) | st.none(), min_size=41, max_size=200), st.sets(st.integers(-1, 301), max_size=5))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_same_rows_as_a_filter_s(
    small: None, tmp_path_factory: pytest.TempPathFactory, numbers: list[int | None], wanted: set[int]
) -> None:
    """Duplicates, NULLs, values that are not there, several keys, and any of the columns."""
    numbers.sort(key=lambda n: -1 if n is None else n)
    table = table_of(numbers)
    path = written(tmp_path_factory.mktemp("pages"), table)
    kept = sorted(wanted)
    for keys in (
        {"k": kept},
        {"s": sorted(f"{n:04}-" for n in wanted)},
        {"d": [DAY + datetime.timedelta(n) for n in kept]},
        {"amount": [Decimal("0.25")], "k": kept},
    ):
        made = found(path, table.schema, keys)
        assert made is None or made.equals(filtered(table, keys))


def test_a_few_keys_cost_a_few_pages(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = table_of([n // 3 for n in range(100_000)])
    path = written(tmp_path, table)
    with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.parquet.page_reader"):
        made = found(path, table.schema, {"k": [5, 30_000]})
    assert made is not None and made.equals(filtered(table, {"k": [5, 30_000]}))
    told = vars(caplog.records[-1])
    assert 1_000 <= told["read_rows"] <= 2_000
    assert told["read_bytes"] < Path(path).stat().st_size / 20


def test_keys_that_are_not_there_cost_their_own_column(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_reader, "_AT_ONCE", 0)
    path = written(tmp_path, table_of([2 * n for n in range(50_000)]))
    sizes = []
    for keys in ({"k": [10_000]}, {"k": [10_001]}):
        with caplog.at_level(logging.DEBUG, "dbt_incremental_dd.parquet.page_reader"):
            made = found(path, table_of([]).schema, keys)
        assert made is not None and made.num_rows == 1 - keys["k"][0] % 2
        sizes.append(vars(caplog.records[-1])["read_bytes"])
    assert sizes[1] < sizes[0] / 2


def test_texts_with_the_same_beginning_are_found(small: None, tmp_path: Path) -> None:
    schema = Schema((Column("s", STRING),))
    table = pa.table({"s": [f"{'a' if i < 60 else 'b'}{LONG_TEXT}{i:04}" for i in range(200)]})
    path = written(tmp_path, table, schema, ("s",))
    keys = {"s": [f"a{LONG_TEXT}0003"]}
    made = found(path, table.schema, keys)
    assert made is not None and made.equals(filtered(table, keys))


@pytest.mark.parametrize("numbers", [list(range(100, 0, -1)), [1] * 100, [*range(99), 0]])
def test_what_is_not_sorted_has_no_index(small: None, tmp_path: Path, numbers: list[int | None]) -> None:
    path = written(tmp_path, table_of(numbers))
    assert not Path(f"{path}{SUFFIX}").exists()
    assert found(path, table_of(numbers).schema, {"k": [1]}) is None


def test_a_column_that_is_not_there_is_left_to_others(small: None, tmp_path: Path) -> None:
    table = table_of(list(range(100)))
    path = written(tmp_path, table)
    assert found(path, pa.schema([*table.schema, ("later", pa.int64())]), {"k": [1]}) is None
    assert found(path, table.schema, {"amount": [Decimal("0.25")]}) is None


def test_repeated_values_are_left_to_others(small: None, tmp_path: Path) -> None:
    schema = Schema((Column("k", LONG), Column("list", Array(LONG))))
    table = pa.table({"k": list(range(100)), "list": [[i] * (i % 3) for i in range(100)]})
    path = written(tmp_path, table, schema, ("k",))
    assert found(path, table.schema, {"k": [1]}) is None
    assert found(path, table.select(["k"]).schema, {"k": [1]}) == pa.table({"k": [1]})


def test_what_spark_writes_is_found(spark: SparkSession, tmp_path: Path) -> None:
    """Its pages, dictionaries, nested columns and timestamps."""
    frame = spark.range(60_000).selectExpr(
        "id DIV 3 AS k",
        "IF(id % 5 = 0, NULL, CAST(id % 100 AS DECIMAL(20, 2))) AS amount",
        "named_struct('seq', id % 9) AS p",
        "timestamp_seconds(id) AS t",
        "concat('text ', id) AS long_text",
        "0L AS dd_time",
        "1L AS dd_diff",
    )
    storage = Storage(str(tmp_path))
    frame = frame.coalesce(1).sortWithinPartitions("k")
    (file,) = write.write_spark(storage, storage.root, frame, ("k",), is_arranged=True)
    path = f"{tmp_path}/{file.path}"
    table = pq.read_table(path, coerce_int96_timestamp_unit="us")
    table = table.cast(pa.schema([field.with_nullable(True).remove_metadata() for field in table.schema]))
    made = found(path, table.schema, {"k": [0, 77, 19_999, 20_000]})
    assert made is not None and made.equals(filtered(table, {"k": [0, 77, 19_999]}))


def test_footers_are_read_and_written_alike(small: None, tmp_path: Path) -> None:
    data = Path(written(tmp_path, table_of([None, *range(100)]))).read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    fields, end = decode(data, start)
    assert end == len(data) - 8
    assert encode(fields) == data[start:end]
    assert isinstance(fields[2], Items) and fields[3] == 101


def test_an_index_is_opened_once(small: None, tmp_path: Path) -> None:
    path = written(tmp_path, table_of(list(range(100))))
    assert open_pages(path) is open_pages(path) is not None


def test_many_rows_are_searched_for_few_keys(tmp_path: Path) -> None:
    """What counts are the pages that are read, not the rows of their files."""
    storage = Storage(str(tmp_path), thresholds=Thresholds(probed_rows=5_000))
    table = table_of(list(range(100_000)))
    files = [write.write_arrow(storage, storage.root, table, SCHEMA, ("k",)) for _ in range(3)]
    found = find_rows(storage, storage.root, files, SCHEMA, {"k": [7, 70_001]})
    assert found is not None and found.num_rows == 6
    assert find_rows(storage, storage.root, files, SCHEMA, {"k": [7, 40_001, 50_001, 70_001]}) is None
    assert find_rows(storage, storage.root, files, SCHEMA, {"amount": [Decimal("0.25")]}) is None
    assert searched_rows(storage, storage.root, files, SCHEMA, {"k": [7, 70_001]}) == 3 * 2 * write.ROWS_PER_PAGE
    narrow = Storage(str(tmp_path), thresholds=Thresholds(probed_bytes=files[0].bytes // 50))
    assert find_rows(narrow, storage.root, files, SCHEMA, {"k": [7, 70_001]}) is None


def test_small_files_have_no_pages_to_count(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path), thresholds=Thresholds(probed_rows=0))
    files = [write.write_arrow(storage, storage.root, table_of([1, 2]), SCHEMA, ("k",))]
    assert find_rows(storage, storage.root, files, SCHEMA, {"k": [1]}) is None
    assert find_rows(storage, storage.root, [], SCHEMA, {"k": [1]}) is not None
