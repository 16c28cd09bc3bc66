"""What keeps an open table right whatever happens to it, whatever its format is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.table import StaticTable

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import CommitConflict
from dbt_incremental_dd.open_table.registry import FORMATS
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.vacuum import vacuum
from tests.open_table.readers import by_delta_rs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


from tests.open_table.shown import Shown, entries


@pytest.mark.parametrize("format", FORMATS)
def test_a_run_without_changes_writes_nothing(spark: SparkSession, tmp_path: Path, format: str) -> None:
    shown = Shown(spark, tmp_path, format=format)
    version = shown.version()
    shown.step()
    assert shown.version() == version


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
        assert not entries(shown.uri)[0].name.startswith("0" * 20)
    else:
        assert len(StaticTable.from_metadata(shown.uri).snapshots()) < 10
    assert len(list(Path(shown.uri, "data").glob("*.parquet"))) < 20
    shown.step(come=range(500, 501), go=range(111, 112))
    shown.check()


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


@pytest.mark.parametrize("format", FORMATS)
def test_two_writers(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    shown = Shown(spark, tmp_path, format=format)
    version = FORMATS[format].load(shown.world.storage, shown.uri)
    shown.step(come=range(40, 41))
    monkeypatch.setattr(type(FORMATS[format]), "load", lambda self, storage, uri: version)
    with pytest.raises(CommitConflict, match="another writer changed the table of"):
        shown.step(go=range(1))
    monkeypatch.undo()
    shown.step()
    shown.check()
