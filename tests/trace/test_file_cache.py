"""Small files are decoded once: the same rows as a file's own, for columns that it has, lacks, or has otherwise."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from dbt_incremental_dd.trace.file_cache import FileCache

LOCAL = fs.LocalFileSystem()
TABLE = pa.table(
    {
        "a": pa.array([1, None, 3], pa.int64()),
        "a.b": pa.array(["x", "y", None]),
        "s": pa.array([{"b": 1}, None, {"b": 3}]),
        "s.b": pa.array([7, 8, 9], pa.int32()),
        "t": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
    }
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    pq.write_table(TABLE, tmp_path / "file.parquet")
    return str(tmp_path / "file.parquet")


def test_columns_in_any_order_and_one_after_the_other(path: str) -> None:
    cache = FileCache()
    for names in (["s.b"], ["a.b", "a"], ["t", "s", "a"], ["s", "s.b", "a.b", "t", "a"]):
        wanted = pa.schema([TABLE.schema.field(name) for name in names])
        assert cache.table(LOCAL, path, wanted) == TABLE.select(names)


def test_a_column_that_the_file_lacks_is_null(path: str) -> None:
    wanted = pa.schema([("later", pa.decimal128(5, 2)), ("a", pa.int64()), ("b", pa.int32())])
    found = FileCache().table(LOCAL, path, wanted)
    assert found is not None and found.to_pylist() == [{"later": None, "a": a, "b": None} for a in (1, None, 3)]


def test_a_column_of_another_type_is_left_to_others(path: str) -> None:
    assert FileCache().table(LOCAL, path, pa.schema([("a", pa.int32())])) is None


def test_a_file_is_read_once(path: str) -> None:
    cache, wanted = FileCache(), TABLE.schema
    cache.table(LOCAL, path, wanted)
    Path(path).unlink()
    assert cache.table(LOCAL, path, wanted) == TABLE
    assert cache.table(LOCAL, path, pa.schema([("none", pa.int64())])) is not None


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    cache = FileCache(most_bytes=17 * TABLE.nbytes)
    for i in range(20):
        pq.write_table(TABLE, tmp_path / f"{i}.parquet")
        cache.table(LOCAL, str(tmp_path / f"{i}.parquet"), TABLE.schema)
        (tmp_path / f"{i}.parquet").unlink()
    assert cache.table(LOCAL, str(tmp_path / "19.parquet"), TABLE.schema) == TABLE
    with pytest.raises(FileNotFoundError):
        cache.table(LOCAL, str(tmp_path / "0.parquet"), TABLE.schema)


def test_what_is_large_is_not_kept(path: str) -> None:
    cache = FileCache(most_bytes=15 * TABLE.nbytes)
    assert cache.table(LOCAL, path, TABLE.schema) == TABLE
    Path(path).unlink()
    with pytest.raises(FileNotFoundError):
        cache.table(LOCAL, path, TABLE.schema)
