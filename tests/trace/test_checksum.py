"""One flipped bit in a stored file: every reader notices it, or has the right rows."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.runtime.scrub import scrub
from dbt_incremental_dd.trace import checksum, pages
from dbt_incremental_dd.trace.damage import damage
from dbt_incremental_dd.trace.layout import Place, Storage
from dbt_incremental_dd.trace.local import read_local
from dbt_incremental_dd.trace.log import Commit, Log
from dbt_incremental_dd.trace.read import struct, updates
from dbt_incremental_dd.trace.write import write_arrow, write_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema((Column("k", "long"), Column("v", "string"), TIME_COLUMN, DIFF_COLUMN))
ROWS = 25_000
"""Enough for an index of pages."""
WANTED = [5, 17_000]


def table() -> pa.Table:
    """Sorted by k."""
    values = [f"v{i * 7919 % 100_003}" for i in range(ROWS)]
    return pa.table([list(range(ROWS)), values, [1] * ROWS, [1] * ROWS], SCHEMA.names)


def stored(place: Place, spark: SparkSession | None = None) -> Log:
    """A collection of one file, by Arrow or by Spark."""
    log = place.create(SCHEMA)
    if spark is None:
        files: tuple[DataFile, ...] = (write_arrow(place.storage, place.trace_uri, table(), SCHEMA, ("k",)),)
    else:
        frame = spark.createDataFrame(table(), struct(SCHEMA)).coalesce(1)
        files = write_spark(place.storage, place.trace_uri, frame, ("k",), is_arranged=True)
    return log.commit(Commit(add=files, upper=2, manifest=place.write_manifest({"kind": "source"})))


def everything(log: Log, storage: Storage) -> pa.Table:
    """All rows, by Arrow."""
    return read_local(storage, log.uri, log.files, SCHEMA)


def by_pages(log: Log, storage: Storage) -> pa.Table:
    """Some keys, by the index of pages."""
    return read_local(storage, log.uri, log.files, SCHEMA, {"k": WANTED})


def by_duckdb(log: Log, storage: Storage) -> pa.Table:
    """Some values of a column that the file is not sorted by."""
    return read_local(storage, log.uri, log.files, SCHEMA, {"v": ["v0", "v7919"]})


READERS: dict[str, Callable[[Log, Storage], pa.Table]] = {
    "arrow": everything,
    "pages": by_pages,
    "duckdb": by_duckdb,
}


def forget() -> None:
    """As in another process."""
    checksum._checked.cache_clear()
    pages.open_pages.cache_clear()


def flip(path: Path, rng: random.Random) -> bytes:
    """One bit is another; what there was."""
    before = path.read_bytes()
    changed = bytearray(before)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    path.write_bytes(changed)
    return before


@pytest.mark.parametrize("suffix", ["", pages.SUFFIX])
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
        updates(spark, log.uri, log.files, SCHEMA).selectExpr("sum(k)", "max(v)", "sum(dd_time)").collect()
    (report,) = scrub(place.storage)
    assert path.name in report.damage
