"""Files that a checkout, a copy or a restore has given new times: only their bytes say whether they have changed."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.sources.connectors.files import connector
from tests.sources.test_intake import COLUMNS, Reader, record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def touch(path: Path, ns: int) -> None:
    os.utime(path, ns=(ns, ns))


def copy_anew(folder: Path) -> None:
    """All files of the source, as a fresh checkout has them."""
    shutil.copytree(folder / "in", folder / "copy", copy_function=shutil.copyfile)
    shutil.rmtree(folder / "in")
    (folder / "copy").rename(folder / "in")
    for number, path in enumerate(sorted((folder / "in").rglob("*.json"))):
        touch(path, 1_000_000_000 + number)


@pytest.mark.parametrize("envelope", ["append", "upsert"])
def test_a_file_with_a_new_time_has_not_changed(spark: SparkSession, tmp_path: Path, envelope: str) -> None:
    reader = Reader(spark, tmp_path, envelope=envelope, key="id")
    reader.write("1.json", [record(1), record(2)])
    reader.write("2.json", [record(3)])
    assert reader.take().rows == 3
    copy_anew(tmp_path)
    assert reader.take().rows == 0
    reader.write("3.json", [record(4)])
    assert reader.take().rows == 1
    copy_anew(tmp_path)
    reader.write("4.json", [record(5)])
    assert reader.take().rows == 1
    assert reader.rows() == Counter({(number, "a", 1): 1 for number in range(1, 6)})


def test_other_bytes_of_the_same_length_are_a_change(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, envelope="append")
    reader.write("1.json", [record(1)])
    reader.take()
    reader.write("1.json", [record(2)])
    with pytest.raises(SourceError, match=r"file 1\.json has changed since it was taken in"):
        reader.take()
    reader.write("1.json", [record(1)])
    assert reader.take().rows == 0
    touch(tmp_path / "in" / "1.json", 5)
    assert reader.take().rows == 0


def test_a_file_that_changes_while_it_is_read_is_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest is not kept: the bytes that it is of may be others than those that were read."""
    reader = Reader(spark, tmp_path, envelope="append")
    reader.write("1.json", [record(1)])
    listed = connector.listing

    def changing(*given: object) -> dict[str, tuple[int, int]]:
        found = listed(*given)  # type: ignore[arg-type]
        reader.write("1.json", [record(2)])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(connector, "listing", changing)
        reader.take()
    with pytest.raises(SourceError, match=r"file 1\.json has changed"):
        reader.take()


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_touched_snapshot_is_not_compared(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitioned: bool
) -> None:
    folders = ("day=2024-01-01", "day=2024-01-02") if partitioned else ("a", "b")
    columns = {**COLUMNS, "day": "date"} if partitioned else COLUMNS
    reader = Reader(spark, tmp_path, columns, envelope="snapshot")
    for number, folder in enumerate(folders):
        (tmp_path / "in" / folder).mkdir()
        reader.write(f"{folder}/1.json", [record(number)])
    assert reader.take().rows == 2
    copy_anew(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(connector, "read_few", lambda *given: pytest.fail("the files have not changed"))
        assert reader.take().rows == 0
    reader.write(f"{folders[1]}/1.json", [record(7)])
    assert reader.take().rows == 2
    assert sum(reader.rows().values()) == 2


def test_progress_without_digests_goes_by_times(spark: SparkSession, tmp_path: Path) -> None:
    """That of an earlier release; what comes later has digests."""
    reader = Reader(spark, tmp_path, envelope="append")
    reader.write("1.json", [record(1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connector, "updated_digests", lambda *given: [])
        reader.take()
    reader.write("2.json", [record(2)])
    assert reader.take().rows == 1
    touch(tmp_path / "in" / "2.json", 7)
    assert reader.take().rows == 0
    touch(tmp_path / "in" / "1.json", 7)
    with pytest.raises(SourceError, match=r"file 1\.json has changed"):
        reader.take()
