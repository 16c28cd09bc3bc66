"""What a history outlives, what it refuses, and what it reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError, DifferentialError, QueryError, StateError
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.history.history import History
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.explain import explain_model
from dbt_incremental_dd.runtime.request import Outcome
from dbt_incremental_dd.runtime.verify import verify_model
from dbt_incremental_dd.trace.commit import Commit
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEYED = History(key=("id",))
_DAY = datetime(2024, 1, 1)


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    made = World(spark, tmp_path, {"t": Table("id INT, name STRING, at TIMESTAMP")})
    made.insert("t", [(1, "ann", _DAY), (2, "bob", _DAY)])
    return made


def _history(world: World, name: str = "h") -> list[tuple[Any, ...]]:
    """Each interval: the row's first two columns, when it begins and ends (ms)."""
    rows = Collection(world.storage, f"{world.schema}.{name}").as_of().to_pylist()
    return sorted(
        (row["id"], str(row["name"]), _ms(row["valid_from"]), _ms(row["valid_to"]))
        for row in rows
        for _ in range(row["dd_diff"])
    )


def _ms(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def _rename(world: World, new: str) -> None:
    world.delete("t", [row for row in world.tables["t"].rows if row[0] == 1])
    world.insert("t", [(1, new, _DAY)])


def _run(world: World, **options: Any) -> Outcome:
    outcome = world.step(**options)["h"]
    assert verify_model(world.spark, world.storage, f"{world.schema}.h").exact
    return outcome


@pytest.mark.parametrize("history", [_KEYED, History()])
def test_it_outlives_a_build_a_changed_query_and_the_inputs_own_history(world: World, history: History) -> None:
    world.model("h", "SELECT id, name FROM {t}", history)
    _run(world)
    first = world.time
    _rename(world, "ann b")
    assert _run(world).strategy == "delta"
    second = world.time
    known = [(1, "ann", first, second), (1, "ann b", second, None), (2, "bob", first, None)]
    assert _history(world) == known
    _run(world, full_refresh=True)
    assert _history(world) == known
    world.model("h", "SELECT id, upper(name) AS name FROM {t} WHERE id = 1", history)
    assert _run(world).strategy == "rebuild"
    third = world.time
    changed = [
        (1, "ANN B", third, None),
        (1, "ann", first, second),
        (1, "ann b", second, third),
        (2, "bob", first, third),
    ]
    assert _history(world) == changed
    for name in ("t", "h"):
        list(compact(LazySession.of(world.spark), world.storage, [f"{world.schema}.{name}"], 0))
    assert _history(world) == changed
    assert _run(world).strategy == "skip"


def test_a_new_column_is_null_in_former_versions(world: World) -> None:
    world.model("h", "SELECT id, name FROM {t}", _KEYED)
    _run(world)
    _rename(world, "ann b")
    _run(world)
    world.model("h", "SELECT id, name, length(name) AS size FROM {t}", _KEYED)
    _run(world)
    rows = Collection(world.storage, f"{world.schema}.h").as_of(world.time).to_pylist()
    found = sorted((row["name"], row["size"], row["is_current"]) for row in rows if row["size"] is not None)
    assert found == [("ann b", 5, True), ("bob", 3, True)]
    assert sorted(row["name"] for row in rows if row["size"] is None) == ["ann", "ann b", "bob"]
    _rename(world, "ann c")
    assert _run(world).strategy == "delta"


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT id FROM {t}", "column name is gone"),
        ("SELECT id, CAST(name AS BINARY) AS name FROM {t}", "column name would be binary in place of string"),
        ("SELECT id, name, at AS valid_to FROM {t}", "has a column called valid_to"),
        ("SELECT id AS other, name FROM {t}", "unique_key of its history names id, which is no column"),
    ],
)
def test_columns_are_not_lost(world: World, sql: str, told: str) -> None:
    world.model("h", "SELECT id, name FROM {t}", _KEYED)
    _run(world)
    kept = _history(world)
    world.model("h", sql, _KEYED)
    with pytest.raises(ConfigError, match=told):
        world.step()
    assert _history(world) == kept


def test_a_table_becomes_a_history_and_does_not_go_back_unasked(world: World) -> None:
    world.model("h", "SELECT id, name FROM {t}")
    world.step()
    world.model("h", "SELECT id, name FROM {t}", _KEYED)
    _run(world)
    begun = world.time
    assert _history(world) == [(1, "ann", begun, None), (2, "bob", begun, None)]
    _rename(world, "ann b")
    _run(world)
    kept = _history(world)
    world.model("h", "SELECT id, name FROM {t}")
    with pytest.raises(ConfigError, match="is stored as a history"):
        world.step()
    assert _history(world) == kept
    world.step(full_refresh=True)
    world.check()


@pytest.mark.parametrize("first", [True, False])
def test_a_key_has_one_row_and_a_row_a_time(world: World, first: bool) -> None:
    world.model("h", "SELECT * FROM {t}", History(key=("id",), time="at"))
    if not first:
        _run(world)
    world.insert("t", [(2, "bob again", _DAY)])
    with pytest.raises(QueryError, match=r"history's key \(id = 2\) has more than one row"):
        world.step()
    world.delete("t", [(2, "bob again", _DAY)])
    world.insert("t", [(3, "cyd", None)])
    with pytest.raises(QueryError, match=r"history's key \(id = 3\) has no time: at is NULL"):
        world.step()
    world.delete("t", [(3, "cyd", None)])
    _run(world)
    day = _ms(_DAY)
    assert _history(world) == [(1, "ann", day, None), (2, "bob", day, None)]


def test_a_time_that_is_none_is_refused(world: World) -> None:
    world.model("h", "SELECT id, name FROM {t}", History(key=("id",), time="no_such"))
    with pytest.raises(DifferentialError, match="no_such"):
        world.step()


def test_one_that_is_damaged_is_not_built_anew(world: World, tmp_path: Path) -> None:
    world.model("h", "SELECT id, name FROM {t}", _KEYED)
    _run(world)
    place = world.storage.collection(f"{world.schema}.h")
    log = place.log()
    assert log is not None
    file = Path(place.trace_uri) / log.files[0].path
    kept = file.read_bytes()
    file.unlink()
    _rename(world, "ann b")
    for full_refresh in (False, True):
        with pytest.raises(StateError, match=r"the history of .* is damaged"):
            world.step(full_refresh=full_refresh)
    file.write_bytes(kept)
    _run(world)
    assert [row[:2] for row in _history(world)] == [(1, "ann"), (1, "ann b"), (2, "bob")]


@pytest.mark.parametrize(
    "settings",
    [{"open_end": "reflect('a', 'b')"}, {"key": 7}, {"columns": [["to"]]}, {"further": 1}, {"columns": None}],
)
def test_settings_that_somebody_else_has_stored_are_not_followed(world: World, settings: dict[str, Any]) -> None:
    world.model("h", "SELECT id, name FROM {t}", _KEYED)
    _run(world)
    place = world.storage.collection(f"{world.schema}.h")
    log = place.log()
    assert log is not None
    manifest = place.read_manifest(log.manifest)
    assert isinstance(manifest, ModelManifest)
    forged = replace(manifest, history={**manifest.history, **settings})
    log.commit(Commit(manifest=place.write_manifest(forged)))
    for look in (verify_model, lambda spark, storage, name: explain_model(LazySession.of(spark), storage, name)):
        with pytest.raises(StateError, match=r"what is stored of .* is damaged"):
            look(world.spark, world.storage, f"{world.schema}.h")
    _rename(world, "ann b")
    _run(world)
    assert [row[:2] for row in _history(world)] == [(1, "ann"), (1, "ann b"), (2, "bob")]


def test_what_reads_it_has_deltas(world: World) -> None:
    world.model("h", "SELECT id, name FROM {t}", _KEYED)
    world.model("now", "SELECT id, name FROM {h} WHERE is_current")
    world.model("versions", "SELECT id, count(*) AS n, max(valid_to) AS last FROM {h} GROUP BY id")
    world.step()
    _rename(world, "ann b")
    outcomes = world.step()
    assert {outcome.strategy for outcome in outcomes.values()} == {"delta"}
    for name in ("now", "versions"):
        assert verify_model(world.spark, world.storage, f"{world.schema}.{name}").exact


def test_a_change_reads_what_it_needs(world: World) -> None:
    world.insert("t", [(id, f"n{id}", _DAY) for id in range(10, 60_000)])
    world.model("h", "SELECT id, name FROM {t}", _KEYED)
    world.step()
    _rename(world, "ann b")
    reads = world.step()["h"].reads
    assert reads.rows < 2_000
