"""What keeps a Delta table right whatever happens to it, and what others do with it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from dbt_incremental_dd.core.errors import ConfigError, StateError
from dbt_incremental_dd.open_table import delta
from dbt_incremental_dd.open_table.delta import DeltaFormat
from tests.open_table.readers import by_delta_rs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


from tests.open_table.shown import Shown, entries


def test_rows_that_only_come_need_no_features_of_readers(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    shown.step(come=range(30, 40))
    assert DeltaTable(shown.uri).to_pyarrow_table().num_rows == 40
    assert DeltaTable(shown.uri).protocol().min_reader_version == 1
    shown.step(go=range(3))
    assert DeltaTable(shown.uri).protocol().reader_features == ["deletionVectors"]
    shown.check()


def test_a_change_adds_files_of_its_own_size(spark: SparkSession, tmp_path: Path) -> None:
    """Many rows, in files with indexes of their pages: what goes is found, and marked."""
    shown = Shown(spark, tmp_path, rows=60_000)
    before = {path: os.stat(path).st_mtime_ns for path in Path(shown.uri, "data").iterdir()}
    shown.step(come=range(70_000, 70_010), go=range(100, 60_000, 5_000))
    shown.check()
    after = set(Path(shown.uri, "data").iterdir()) - set(before)
    assert sum(path.stat().st_size for path in after) < 10_000
    assert len(DeltaTable(shown.uri).file_uris()) == 2


def test_small_files_are_merged_and_deleted_rows_leave(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path, rows=2_000)
    for i in range(24):
        shown.step(come=range(3_000 + i, 3_001 + i), go=range(i * 20, i * 20 + 20))
        shown.check()
    assert shown.files() < 20
    adds = [json.loads(line) for line in entries(shown.uri)[-1].read_text().splitlines()]
    assert not any("remove" in line and "dataChange" not in line["remove"] for line in adds)
    version = DeltaFormat().load(shown.world.storage, shown.uri)
    assert version is not None
    assert max(file.deleted / file.data.rows for file in version.files if file.data.rows > 1_000) <= 0.26


def test_a_table_that_others_have_changed_is_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    shown.step(come=range(40, 41))
    removed = next(json.loads(line)["add"] for line in entries(shown.uri)[-1].read_text().splitlines() if "add" in line)
    lines: list[dict[str, Any]] = [{"commitInfo": {"inCommitTimestamp": 9_000}}]
    lines.append({"remove": {"path": removed["path"], "dataChange": True, "deletionTimestamp": 9_000}})
    Path(shown.uri, "_delta_log", f"{2:020d}.json").write_text("\n".join(map(json.dumps, lines)))
    assert by_delta_rs(shown.uri, ("id",)).total() == 30
    shown.step(go=range(2))
    shown.check()
    assert DeltaTable(shown.uri).version() == 3


def test_a_log_that_others_have_cleaned_up_or_damaged(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    shown.step(come=range(40, 41))
    log = Path(shown.uri, "_delta_log")
    (log / f"{2:020d}.json").write_text(json.dumps({"commitInfo": {"inCommitTimestamp": 9_000}}))
    (log / f"{3:020d}.json").write_text(json.dumps({"commitInfo": {"inCommitTimestamp": 9_001}}))
    DeltaTable(shown.uri).create_checkpoint()
    for number in range(3):
        (log / f"{number:020d}.json").unlink()
    shown.step(go=range(2))
    shown.check()
    (log / f"{3:020d}.checkpoint.parquet").unlink()
    delta.WRITTEN.clear()  # as in another process
    with pytest.raises(StateError, match=r"the table of .* cannot be read: its log has no version 0 any more"):
        shown.step(go=range(2, 4))
    shutil.rmtree(shown.uri)
    shown.step()
    shown.check()


@pytest.mark.parametrize(("path", "vector"), [("../../x.parquet", {}), ("", {"storageType": "p"})])
def test_files_elsewhere_are_not_followed(
    spark: SparkSession, tmp_path: Path, path: str, vector: dict[str, str]
) -> None:
    """Anybody who can write to the state root may have written the log."""
    shown = Shown(spark, tmp_path)
    shown.step(go=range(1))
    entry = entries(shown.uri)[-1]
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for add in (line["add"] for line in lines if "deletionVector" in line.get("add", {})):
        add |= {"path": path or add["path"], "deletionVector": {**add["deletionVector"], **vector}}
    entry.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(StateError, match=r"the table of .* cannot be read: it names"):
        shown.step(go=range(1, 2))


def test_delta_rs_does_not_write_to_it(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    with pytest.raises(DeltaError, match="InCommitTimestamp"):
        write_deltalake(shown.uri, DeltaTable(shown.uri).to_pyarrow_table(), mode="append")


def test_a_former_version_is_made_up_for(spark: SparkSession, tmp_path: Path) -> None:
    """As after a restore of the table alone."""
    shown = Shown(spark, tmp_path)
    shown.step(go=range(2))
    entries(shown.uri)[-1].unlink()
    shown.step(go=range(2, 4))
    shown.check()
    assert DeltaTable(shown.uri).version() == 1


def test_rows_that_are_lost_are_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    shown.step(come=range(40, 42))
    entry = entries(shown.uri)[-1]
    entry.write_text("\n".join(line for line in entry.read_text().splitlines() if not line.startswith('{"add"')))
    shown.step(go=range(40, 41))
    shown.check()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT id, NULL AS nothing FROM {t}", "cannot have the column nothing, of type void"),
        ("SELECT id, 'x' AS _change_type FROM {t}", "cannot have the column _change_type, which its change feed has"),
    ],
)
def test_columns_that_a_delta_table_cannot_have(spark: SparkSession, tmp_path: Path, sql: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Shown(spark, tmp_path, sql=sql)
