"""What keeps an open table right whatever happens to it, and what others do with it."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from pyiceberg.table import StaticTable

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import CommitConflict, ConfigError, StateError
from dbt_incremental_dd.core.schema import DIFF
from dbt_incremental_dd.open_table import delta
from dbt_incremental_dd.open_table.delta import DeltaFormat
from dbt_incremental_dd.open_table.registry import FORMATS
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.vacuum import vacuum
from tests.open_table.readers import READERS, Rows, by_delta_rs, plain
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Shown:
    """A table of numbered rows, and a model of them with an open table."""

    def __init__(
        self, spark: SparkSession, folder: Path, rows: int = 30, sql: str = "SELECT * FROM {t}", format: str = "delta"
    ) -> None:
        table = Table("id INT, g STRING, v DOUBLE", [(i, f"g{i % 3}", i / 4) for i in range(rows)])
        self.world, self.format = World(spark, folder, {"t": table}), format
        self.world.model("m", sql, output=format)
        self.world.step()

    @property
    def collection(self) -> Collection:
        return Collection(self.world.storage, f"{self.world.schema}.m")

    @property
    def uri(self) -> str:
        return self.collection.place.table_uri

    def step(self, come: range = range(0), go: range = range(0)) -> None:
        """Rows of these numbers come and go."""
        self.world.delete("t", [(i, f"g{i % 3}", i / 4) for i in go])
        self.world.insert("t", [(i, f"g{i % 3}", i / 4) for i in come])
        self.world.step()

    def as_of(self, t: int | None = None) -> Counter[tuple[Any, ...]]:
        rows = self.collection.as_of(t).to_pylist()
        names = self.collection.schema.names
        return Counter({tuple(plain(row[name]) for name in names): row[DIFF] for row in rows})

    def check(self) -> None:
        assert self.shown(self.collection.schema.names) == self.as_of()

    def shown(self, columns: Sequence[str] = ("id",), version: int | None = None) -> Rows:
        """Columns of a version's rows, as a library that knows the format reads them."""
        return READERS[self.format](self.uri, columns, version)

    def version(self) -> int:
        version = FORMATS[self.format].load(self.world.storage, self.uri)
        assert version is not None
        return version.number

    def files(self) -> int:
        return len(DeltaTable(self.uri).file_uris())


def test_rows_that_only_come_need_no_features_of_readers(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    shown.step(come=range(30, 40))
    assert DeltaTable(shown.uri).to_pyarrow_table().num_rows == 40
    assert DeltaTable(shown.uri).protocol().min_reader_version == 1
    shown.step(go=range(3))
    assert DeltaTable(shown.uri).protocol().reader_features == ["deletionVectors"]
    shown.check()


@pytest.mark.parametrize("format", FORMATS)
def test_a_run_without_changes_writes_nothing(spark: SparkSession, tmp_path: Path, format: str) -> None:
    shown = Shown(spark, tmp_path, format=format)
    version = shown.version()
    shown.step()
    assert shown.version() == version


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
    adds = [json.loads(line) for line in _entries(shown.uri)[-1].read_text().splitlines()]
    assert not any("remove" in line and "dataChange" not in line["remove"] for line in adds)
    version = DeltaFormat().load(shown.world.storage, shown.uri)
    assert version is not None
    assert max(file.deleted / file.data.rows for file in version.files if file.data.rows > 1_000) <= 0.26


@pytest.mark.parametrize("format", FORMATS)
def test_former_times_stay_readable_as_long_as_those_of_the_collection(
    spark: SparkSession, tmp_path: Path, format: str
) -> None:
    shown = Shown(spark, tmp_path, format=format)
    at = {}
    for i in range(12):
        shown.step(come=range(100 + i, 101 + i), go=range(i, i + 1))
        at[shown.world.time] = shown.version()
    list(compact(LazySession.of(spark), shown.world.storage, retain_history=5))
    list(vacuum(shown.world.storage, older_than=0))
    since = shown.collection.frontiers.since
    for t, version in at.items():
        if t >= since:
            assert shown.shown(shown.collection.schema.names, version) == shown.as_of(t), t
    if format == "delta":
        assert not _entries(shown.uri)[0].name.startswith("0" * 20)
    else:
        assert len(StaticTable.from_metadata(shown.uri).snapshots()) < 10
    assert len(list(Path(shown.uri, "data").glob("*.parquet"))) < 20
    shown.step(come=range(500, 501), go=range(111, 112))
    shown.check()


def test_a_table_that_others_have_changed_is_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    shown.step(come=range(40, 41))
    removed = next(
        json.loads(line)["add"] for line in _entries(shown.uri)[-1].read_text().splitlines() if "add" in line
    )
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
    delta._KNOWN.clear()  # as in another process
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
    entry = _entries(shown.uri)[-1]
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


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_that_is_gone_is_written_anew(spark: SparkSession, tmp_path: Path, format: str) -> None:
    shown = Shown(spark, tmp_path, format=format)
    shutil.rmtree(shown.uri)
    shown.step(go=range(2))
    shown.check()


@pytest.mark.parametrize("format", FORMATS)
def test_other_columns(spark: SparkSession, tmp_path: Path, format: str) -> None:
    shown = Shown(spark, tmp_path, format=format)
    shown.step(go=range(2))
    shown.world.model("m", "SELECT id, g, v AS w, id + 1 AS `count(1)` FROM {t}", output=format)
    shown.step(go=range(2, 4))
    assert "count(1)" in shown.collection.schema.names
    shown.check()
    shown.step(go=range(4, 6))
    shown.check()


def test_a_model_that_has_no_table_any_more(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    assert shown.collection.table_uri == shown.uri
    shown.world.model("m", shown.world.models["m"])
    shown.step()
    assert not Path(shown.uri).exists()
    assert shown.collection.table_uri is None
    shown.world.model("m", shown.world.models["m"], output="delta")
    shown.step()
    shown.check()


def test_a_table_of_another_format(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    for number, shown.format in enumerate(("iceberg", "delta")):
        shown.world.model("m", shown.world.models["m"], output=shown.format)
        shown.step(go=range(number, number + 1))
        shown.check()
    assert not Path(shown.uri, "metadata").exists()


def test_a_model_built_before_has_its_rows_at_once(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    shown.world.model("later", "SELECT g, count(*) AS n FROM {t} GROUP BY g")
    shown.step()
    shown.world.model("later", shown.world.models["later"], output="delta")
    shown.step()
    collection = Collection(shown.world.storage, f"{shown.world.schema}.later")
    rows = {(row["g"], row["n"]): 1 for row in collection.as_of().to_pylist()}
    assert by_delta_rs(collection.place.table_uri, ("g", "n")) == rows


def test_a_full_refresh(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    shown.step(go=range(5))
    shown.world.step(full_refresh=True)
    shown.check()
    shown.step(go=range(5, 7))
    shown.check()


@pytest.mark.parametrize("format", FORMATS)
def test_no_rows(spark: SparkSession, tmp_path: Path, format: str) -> None:
    shown = Shown(spark, tmp_path, rows=0, format=format)
    assert shown.shown() == {}
    shown.step(come=range(3))
    shown.check()
    shown.step(go=range(3))
    assert shown.shown() == {}
    shown.step(come=range(1))
    shown.check()


def test_a_former_version_is_made_up_for(spark: SparkSession, tmp_path: Path) -> None:
    """As after a restore of the table alone."""
    shown = Shown(spark, tmp_path)
    shown.step(go=range(2))
    _entries(shown.uri)[-1].unlink()
    shown.step(go=range(2, 4))
    shown.check()
    assert DeltaTable(shown.uri).version() == 1


def test_rows_that_are_lost_are_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    shown = Shown(spark, tmp_path)
    shown.step(come=range(40, 42))
    entry = _entries(shown.uri)[-1]
    entry.write_text("\n".join(line for line in entry.read_text().splitlines() if not line.startswith('{"add"')))
    shown.step(go=range(40, 41))
    shown.check()


def test_two_writers(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Shown(spark, tmp_path)
    version = DeltaFormat().load(shown.world.storage, shown.uri)
    shown.step(come=range(40, 41))
    monkeypatch.setattr(DeltaFormat, "load", lambda self, storage, uri: version)
    with pytest.raises(CommitConflict, match="another writer changed the table of"):
        shown.step(go=range(1))
    monkeypatch.undo()
    shown.step()
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


def _entries(uri: str) -> list[Path]:
    return sorted(Path(uri, "_delta_log").glob("*.json"))
