"""What is stored is damaged: it is noticed, named, and made good for that model alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import SourceError, StateError
from dbt_incremental_dd.core.foreign import file_of, is_foreign, reason
from dbt_incremental_dd.core.time import format_time
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.run import Run
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "sums": "SELECT k, sum(v) AS v, min(v) AS low, count(*) AS n FROM {t} GROUP BY k",
    "above": "SELECT k, v FROM {sums} WHERE n > 1",
}


def files(folder: Path, pattern: str) -> list[Path]:
    """Those that match, newest first."""
    return sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns, reverse=True)


def remove(path: Path) -> None:
    """The file is gone."""
    path.unlink()


def halve(path: Path) -> None:
    """Only its first half is there."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    """Nothing of it is there."""
    path.write_bytes(b"")


def garble(path: Path) -> None:
    """It is something else."""
    path.write_bytes(b"\0not what was here\0")


HEALED = {
    "a data file is gone": ("trace/data/**/*.parquet", remove),
    "a data file was cut": ("trace/data/**/*.parquet", halve),
    "a state's file is gone": ("inner/*/data/**/*.parquet", remove),
    "a state's file is empty": ("inner/*/data/**/*.parquet", empty),
    "a state's log is gone": ("inner/*/_delta_log/*.json", remove),
    "a state's log is garbled": ("inner/*/_delta_log/*.json", garble),
    "the plan is garbled": ("plan-*.json", garble),
    "what is shown is garbled": ("shown.json", garble),
    "what is shown is gone": ("shown.json", remove),
}
"""Made good by the next run, without anybody."""
NAMED = {
    "the manifest is gone": ("manifests/*.json", remove),
    "the manifest was cut": ("manifests/*.json", halve),
    "the manifest is garbled": ("manifests/*.json", garble),
    "the log's last entry was cut": ("trace/_delta_log/*.json", halve),
    "the log's last entry is garbled": ("trace/_delta_log/*.json", garble),
}
"""Told, with what to do; a full refresh makes it good."""


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    made = World(spark, tmp_path, {"t": Table("k INT, v INT")})
    for name, sql in MODELS.items():
        made.model(name, sql)
    made.insert("t", [(i % 5, i) for i in range(40)])
    made.step()
    made.insert("t", [(1, 100), (7, 1)])
    made.step()
    made.check()
    return made


def damaged(world: World, folder: Path, pattern: str, do: Callable[[Path], None], model: str = "sums") -> None:
    """The newest such file of a model, or of its table."""
    found = files(folder / "collections" / f"{world.schema}.{model}", pattern)
    assert found, pattern
    do(found[0])


@pytest.mark.parametrize("case", HEALED)
def test_it_is_made_good(world: World, tmp_path: Path, case: str) -> None:
    damaged(world, tmp_path, *HEALED[case])
    world.delete("t", [(0, 0), (1, 1)])
    world.insert("t", [(2, -5), (8, 8)])
    world.step()
    world.check()
    world.insert("t", [(3, 3)])
    world.step(fallback="error")
    world.check()


@pytest.mark.parametrize("case", NAMED)
def test_it_is_named(world: World, tmp_path: Path, case: str) -> None:
    damaged(world, tmp_path, *NAMED[case])
    world.insert("t", [(2, -5)])
    with pytest.raises(StateError, match=f"{world.schema}.sums") as caught:
        world.step()
    assert "--full-refresh" in caught.value.remedy
    world.step(full_refresh=True)
    world.check()
    world.insert("t", [(3, 3)])
    world.step()
    world.check()


def test_an_input_that_is_damaged_is_named(world: World, tmp_path: Path) -> None:
    damaged(world, tmp_path, "trace/data/**/*.parquet", remove, "t")
    world.insert("t", [(2, -5)])
    with pytest.raises(SourceError, match=rf"sums reads {world.schema}\.t, which is damaged: file .* is missing"):
        world.step(full_refresh=True)


def test_a_state_of_another_version_is_refused(world: World, tmp_path: Path) -> None:
    (newest, *_) = files(tmp_path / "collections" / f"{world.schema}.sums", "manifests/*.json")
    newest.write_text(newest.read_text().replace('"format": 1', '"format": 99'))
    world.insert("t", [(2, -5)])
    with pytest.raises(StateError, match="stored in format 99, this version reads 1"):
        world.step()


def test_relations_that_show_what_is_gone_are_made_again(world: World, spark: SparkSession, tmp_path: Path) -> None:
    """As after a run with another metastore, which has made other links and removed those that this one's views show."""
    place = tmp_path / "collections" / f"{world.schema}.sums"
    shown = max(place.glob("live/*"), key=lambda folder: int(folder.name))
    shutil.copytree(shown, tmp_path / "gone")
    spark.sql(f"ALTER VIEW {world.schema}.sums__changes AS SELECT * FROM parquet.`{tmp_path}/gone`")
    shutil.rmtree(tmp_path / "gone")
    told = json.loads((place / "shown.json").read_text())
    (place / "shown.json").write_text(json.dumps({**told, "shape": "rows"}))
    world.insert("t", [(3, 3)])
    world.step(fallback="error")
    world.check()


def test_relations_are_made_again_after_a_restore(world: World, tmp_path: Path) -> None:
    """The metastore is newer than what was put back: its views show folders that are not there, or come to be others."""
    shutil.copytree(tmp_path / "collections", tmp_path / "backup")
    world.step(full_refresh=True)
    shutil.rmtree(tmp_path / "collections")
    shutil.copytree(tmp_path / "backup", tmp_path / "collections")
    world.step()
    world.check()
    world.delete("t", [(1, 100)])
    world.step()
    world.check()


def test_errors_of_others_are_told_in_a_line() -> None:
    text = (
        "An error occurred while calling o1.collect.\n: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] "
        "Encountered error while reading file file:///data/in/2.json.gz. SQLSTATE: KD001\n\tat a.B.c(B.java:1)\n"
        "Caused by: java.io.EOFException: Unexpected end of input stream\n\tat d.E.f(E.java:2)\n"
    )
    error = OSError(text)
    assert is_foreign(error) and not is_foreign(KeyError("x"))
    assert reason(error) == "EOFException: Unexpected end of input stream"
    assert file_of(error) == "/data/in/2.json.gz"
    alone = OSError(
        "An error occurred while calling o62.sql.\n: java.lang.ArithmeticException: long overflow\n\tat a.B.c(B.java:1)"
    )
    assert reason(alone) == "ArithmeticException: long overflow"


@pytest.mark.parametrize("behind", ["t", "sums"])
def test_an_input_that_is_behind_its_model_is_refused(world: World, tmp_path: Path, behind: str) -> None:
    """As after a restore from an older backup: whole in itself, marks and all. It stays refused, and nothing is added."""
    place = tmp_path / "collections" / f"{world.schema}.{behind}"
    shutil.copytree(place, tmp_path / "backup")
    before = format_time(world.time)
    world.insert("t", [(2, -5), (2, -6)])
    world.step()
    now = format_time(world.time)
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "backup", place)
    reader = {"t": "sums", "sums": "above"}[behind]
    for _ in range(2):
        run = Run(LazySession.of(world.spark), world.storage, "late", world.time + 1, lambda line: None)
        with pytest.raises(StateError) as refused:
            run.model(world._request(reader))
        assert f"{reader} has read {world.schema}.{behind} up to {now}" in refused.value.message
        assert f"ends at {before}: it has lost its newest commits" in refused.value.message
        assert f"{behind}+`" in refused.value.remedy
    if behind == "sums":
        world.step(full_refresh=True)
        world.check()
