"""A table of versions becomes a history's first contents, and the history goes on from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import AdoptionError, ConfigError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.runtime.adopt import Adopt
from tests.engines import engine
from tests.history.test_random import Rounds
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OTHER_COLUMNS = (("updated", "updated_at"), ("from", "begins"), ("to", "ends"))


_KINDS = ("of_rows", "by_key", "by_time", "checked", "timed", "checked_and_marked")
_CASES = [*((kind, False) for kind in _KINDS), ("of_rows", True), ("by_time", True)]


@pytest.mark.parametrize(("kind", "is_in_spark"), _CASES)
def test_it_goes_on_as_if_it_had_been_kept_here(
    spark: SparkSession, tmp_path: Path, kind: str, is_in_spark: bool
) -> None:
    rounds = Rounds(spark, tmp_path, 7, (kind,), engine(is_in_spark))
    world, taken = rounds.world, f"{kind}_taken"
    for _ in range(4):
        rounds.change()
        world.step()
        rounds.check()
    spark.sql(f"CREATE TABLE {world.schema}.versions AS SELECT * FROM {world.schema}.{kind}")
    world.model(taken, world.models.pop(kind), world.histories[kind])
    rounds.references[taken] = rounds.references.pop(kind)
    rounds.change()
    outcome = world.step(adopt=Adopt(f"{world.schema}.versions"))[taken]
    assert outcome.strategy == "adopt"
    assert "adopted from w" in outcome.message
    assert "its versions do not overlap" in outcome.message
    rounds.check()
    for _ in range(1 if is_in_spark else 5):
        rounds.change()
        assert world.step()[taken].strategy in ("delta", "skip")
        rounds.check()


def _world(spark: SparkSession, tmp_path: Path, versions: str, **settings: str) -> World:
    """A model with a history by its key, and a table of versions: id, name, from, to."""
    world = World(spark, tmp_path, {"t": Table("id INT, name STRING")}, Thresholds())
    world.insert("t", [(1, "ann"), (2, "bob")])
    world.model("m", "SELECT id, name FROM {t}", History(key=("id",), columns=_OTHER_COLUMNS, **settings))
    columns = "id, name, timestamp(f) AS updated_at, timestamp(f) AS begins, timestamp(e) AS ends"
    spark.sql(f"CREATE TABLE {world.schema}.v AS SELECT {columns} FROM VALUES {versions} AS v(id, name, f, e)")
    return world


@pytest.mark.parametrize(
    ("versions", "wrong"),
    [
        ("(1, 'ann', '1969-01-01', NULL), (1, 'bob', '1969-02-01', NULL)", "1 of its keys have more than one open"),
        ("(1, 'ann', '1969-01-01', '1969-03-01'), (1, 'bob', '1969-02-01', NULL)", "1 of its versions overlap"),
        ("(1, 'ann', '1969-01-01', '9999-12-31')", "1 of its versions have no end, or one in the year 9000"),
    ],
)
def test_versions_from_which_it_cannot_go_on(spark: SparkSession, tmp_path: Path, versions: str, wrong: str) -> None:
    world = _world(spark, tmp_path, versions)
    with pytest.raises(AdoptionError, match=wrong):
        world.step(adopt=Adopt(f"{world.schema}.v"))
    log = world.storage.collection(f"{world.schema}.m").log()
    assert log is None or not log.files


def test_an_open_end_that_is_no_null(spark: SparkSession, tmp_path: Path) -> None:
    versions = "(1, 'eve', '1969-01-01', '9999-12-31'), (3, 'cyd', '1969-01-01', '9999-12-31')"
    world = _world(spark, tmp_path, versions, open_end="to_date('9999-12-31')")
    world.step(adopt=Adopt(f"{world.schema}.v"))
    found = Collection(world.storage, f"{world.schema}.m").as_of(world.time).to_pylist()
    assert sorted((row["id"], row["name"], row["begins"].year, row["ends"].year) for row in found) == [
        (1, "ann", 1970, 9999),
        (1, "eve", 1969, 1970),
        (2, "bob", 1970, 9999),
        (3, "cyd", 1969, 1970),
    ]


def test_columns_that_the_table_has_not(spark: SparkSession, tmp_path: Path) -> None:
    world = _world(spark, tmp_path, "(1, 'ann', '1969-01-01', NULL)")
    spark.sql(f"CREATE TABLE {world.schema}.less AS SELECT id, begins, ends, 1 AS odd FROM {world.schema}.v")
    with pytest.raises(ConfigError, match=r"not in the table: name, updated_at; not in the query: odd"):
        world.step(adopt=Adopt(f"{world.schema}.less"))
