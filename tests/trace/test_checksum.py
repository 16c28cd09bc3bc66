"""One flipped bit in a stored file: every reader notices it, or has the right rows."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING
from dbt_incremental_dd.parquet import checksum, page_index, page_reader
from dbt_incremental_dd.runtime.scrub import scrub
from dbt_incremental_dd.trace import driver_reader
from dbt_incremental_dd.trace.arrow_reader import contents
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.damage import damage
from dbt_incremental_dd.trace.driver_reader import read_files
from dbt_incremental_dd.trace.file_cache import FileCache
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.spark_reader import struct, updates
from dbt_incremental_dd.trace.write import write_arrow, write_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema((Column("k", LONG), Column("v", STRING), TIME_COLUMN, DIFF_COLUMN))
MANIFEST = ModelManifest(schema=Schema(SCHEMA.columns[:2]))
ROWS = 25_000
"""Enough for an index of pages."""
WANTED = [5, 17_000]


def table(rows: int) -> pa.Table:
    """Sorted by k."""
    values = [f"v{i * 7919 % 100_003}" for i in range(rows)]
    return pa.table([list(range(rows)), values, [1] * rows, [1] * rows], SCHEMA.names)


def stored(place: CollectionStore, spark: SparkSession | None = None, rows: int = ROWS) -> Log:
    """A collection of one file, by Arrow or by Spark."""
    log = place.create(SCHEMA)
    if spark is None:
        files: tuple[DataFile, ...] = (write_arrow(place.storage, place.trace_uri, table(rows), SCHEMA, ("k",)),)
    else:
        frame = spark.createDataFrame(table(rows), struct(SCHEMA)).coalesce(1)
        files = write_spark(place.storage, place.trace_uri, frame, ("k",), is_arranged=True)
    return log.commit(Commit(add=files, upper=2, manifest=place.write_manifest(MANIFEST)))


def everything(log: Log, storage: Storage) -> pa.Table:
    """All rows, by Arrow."""
    return read_files(storage, log.uri, log.files, SCHEMA)


def by_pages(log: Log, storage: Storage) -> pa.Table:
    """Some keys, by the index of pages."""
    return read_files(storage, log.uri, log.files, SCHEMA, {"k": WANTED})


def by_duckdb(log: Log, storage: Storage) -> pa.Table:
    """Some values of a column that the file is not sorted by."""
    return read_files(storage, log.uri, log.files, SCHEMA, {"v": ["v0", "v7919"]})


def by_api(log: Log, storage: Storage) -> pa.Table:
    """As of a time, for whoever has no Spark."""
    return contents(storage.collection("m.x"), 1)


READERS: dict[str, Callable[[Log, Storage], pa.Table]] = {
    "arrow": everything,
    "pages": by_pages,
    "duckdb": by_duckdb,
}


def forget() -> None:
    """As in another process."""
    checksum._checked.cache_clear()
    page_index.open_pages.cache_clear()
    driver_reader._CACHE = FileCache()


def flip(path: Path, rng: random.Random) -> bytes:
    """One bit is another; what there was."""
    before = path.read_bytes()
    changed = bytearray(before)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    path.write_bytes(changed)
    return before


@pytest.mark.parametrize("suffix", ["", page_index.SUFFIX])
@pytest.mark.parametrize("reader", READERS)
def test_a_flipped_bit_gives_no_wrong_rows(tmp_path: Path, reader: str, suffix: str) -> None:
    place = Storage(str(tmp_path)).collection("m.x")
    log, read, rng, noticed = stored(place), READERS[reader], random.Random(reader + suffix), 0
    path = Path(f"{log.uri}/{log.files[0].path}{suffix}")
    assert path.exists()
    right = read(log, place.storage)
    for trial in range(40):
        before = flip(path, rng)
        forget()
        try:
            assert read(log, place.storage).equals(right), trial
        except (OSError, pa.ArrowException):
            noticed += 1
        assert (damage(place.storage, log, contents=True) is None) == bool(suffix)
        path.write_bytes(before)
    if suffix:
        assert noticed == 0, "an index that is damaged is not used"
    elif reader == "duckdb":
        assert noticed == 40, "all of the file is read"
    forget()
    assert read(log, place.storage).equals(right)


def test_bytes_all_over_a_small_file_are_verified(tmp_path: Path) -> None:
    """Also those of page headers and of the footer, which have no checksums of their own."""
    place = Storage(str(tmp_path)).collection("m.x")
    log, rng = stored(place, rows=20), random.Random(1)
    path = Path(f"{log.uri}/{log.files[0].path}")
    before = path.read_bytes()
    for at in range(0, len(before), 3):
        changed = bytearray(before)
        changed[at] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        forget()
        for read in (everything, by_api):
            with pytest.raises((OSError, StateError), match="checksum"):
                read(log, place.storage)


@pytest.mark.parametrize("by_duckdb", [False, True])
def test_each_byte_of_a_page_and_its_header_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_duckdb: bool
) -> None:
    """Of a file of which only a few pages are read, or which DuckDB reads in their place, too large to be read whole
    before."""
    if by_duckdb:
        monkeypatch.setattr(page_reader, "_is_slower", lambda _: True)
        monkeypatch.setattr(driver_reader, "_LITTLE", -1)
        monkeypatch.setattr(checksum, "CHECKED_BYTES", 0)
    place = Storage(str(tmp_path)).collection("m.x")
    log = stored(place)
    path = Path(f"{log.uri}/{log.files[0].path}")
    right, index = by_pages(log, place.storage), page_index.open_pages(str(path))
    assert index is not None
    before, first = path.read_bytes(), int(index.are_pages.argmax())
    for number in range(len(SCHEMA.names)):
        start, end = (int(at) for at in index.places(number)[first : first + 2])
        assert start < end
        for at in [*range(start, min(start + 60, end)), end - 1]:
            changed = bytearray(before)
            changed[at] ^= 1 << at % 8
            path.write_bytes(changed)
            with pytest.raises(OSError, match="checksum verification failed"):
                by_pages(log, place.storage)
    path.write_bytes(before)
    assert by_pages(log, place.storage).equals(right)


def test_files_of_spark_are_verified_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    """What users query is read by Spark, too."""
    place = Storage(str(tmp_path)).collection("m.x")
    log, rng = stored(place, spark), random.Random(1)
    path = Path(f"{log.uri}/{log.files[0].path}")
    assert f"{zlib.crc32(path.read_bytes()):08x}" in path.name
    assert not list(path.parent.glob(".part-*.crc"))
    (report,) = scrub(place.storage)
    assert not report.damage and report.files == 1
    before = path.read_bytes()
    changed = bytearray(before)
    changed[rng.randrange(2_000, len(changed) // 2)] ^= 1
    path.write_bytes(changed)
    with pytest.raises(Exception, match=r"CRC checksum verification failed|FAILED_READ_FILE"):
        spark.read.parquet(str(path)).selectExpr("sum(k)", "max(v)", "sum(dd_time)").collect()
    with pytest.raises(OSError, match="checksum verification failed"):
        updates(spark, log.uri, log.files, SCHEMA)
    (report,) = scrub(place.storage)
    assert path.name in report.damage
