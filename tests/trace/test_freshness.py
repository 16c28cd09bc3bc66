"""How far models are behind, by what is stored of them and of their sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.core.manifest import Manifest, ModelManifest, RecordedRun, SourceManifest, StoredPosition
from dbt_incremental_dd.core.schedule import Change
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.target_lag import format_lag, lag_text, parse_target_lag
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.freshness import Freshness, duration
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.managed_frontier import declare
from dbt_incremental_dd.trace.watched import note_seen
from dbt_incremental_dd.trace.write import write_arrow


def commit(root: Path, name: str, upper: int, manifest: Manifest, *times: int) -> None:
    """One commit, with one file of updates of these times."""
    place = Storage(str(root)).collection(name)
    log = place.create(Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN)))
    columns = {"k": times, "dd_time": times, "dd_diff": [1] * len(times)}
    table = pa.table({key: pa.array(values, pa.int64()) for key, values in columns.items()})
    files = (write_arrow(place.storage, place.trace_uri, table, log.schema),) if times else ()
    log.commit(Commit(add=files, upper=upper, manifest=place.write_manifest(manifest)))


def model(*inputs: str, **more: object) -> ModelManifest:
    given: Mapping[str, object] = {"target_lag": 100, **more}
    return ModelManifest(inputs={f"in.{name}": name for name in inputs}, **given)  # type: ignore[arg-type]


def behind(root: Path, name: str) -> int | None:
    found = Database(str(root))[name].freshness()
    assert found is not None
    return found.behind_since


def test_the_oldest_change_that_is_lacking(tmp_path: Path) -> None:
    commit(tmp_path, "s.a", 31, SourceManifest(), 10, 20, 30)
    commit(tmp_path, "s.b", 31, SourceManifest(), 5)
    commit(tmp_path, "m.stg", 31, model("s.a", target_lag="downstream"))
    commit(tmp_path, "m.other", 31, model("s.b", target_lag=None))
    commit(tmp_path, "m.mart", 16, model("m.stg", "m.other"))
    assert behind(tmp_path, "m.stg") is None
    assert behind(tmp_path, "m.mart") == 20, "a time in the middle of a file; m.stg has it already"
    commit(tmp_path, "s.b", 41, SourceManifest(), 18, 40)
    assert behind(tmp_path, "m.mart") == 18 and behind(tmp_path, "m.stg") is None
    commit(tmp_path, "m.mart", 31, model("m.stg", "m.other"))
    assert behind(tmp_path, "m.mart") == 40
    database = Database(str(tmp_path))
    assert database["m.other"].freshness() is None and set(database.freshness()) == {"m.stg", "m.mart"}
    # A moment that is earlier than the version's own time: its query has changed over unchanged inputs.
    commit(tmp_path, "m.mart", 61, model("m.stg", "m.other", position=StoredPosition(60, 35, {})))
    assert behind(tmp_path, "m.mart") == 40
    note_seen(database.storage.collection("s.a"), [Change(29, 30), Change(38, 39), Change(45, 46)])
    assert behind(tmp_path, "m.mart") == 38, "what a watch has seen, and nobody has taken in"


def test_what_is_not_final_and_time_itself(tmp_path: Path) -> None:
    managed = SourceManifest(frontier="managed")
    commit(tmp_path, "s.a", 31, managed, 10)
    note_seen(Storage(str(tmp_path)).collection("s.a"), [Change(35, 35)])
    commit(tmp_path, "m.a", 31, model("s.a"))
    assert behind(tmp_path, "m.a") is None
    database = Database(str(tmp_path))
    assert database.due(10**6) == ((), (), None)
    declare(database.storage.collection("s.a"), 50)
    assert database.due(200).models == ("m.a",) and database.due(20) == ((), (), 130)
    commit(tmp_path, "m.recent", 31, model("s.a", temporal=True))
    commit(tmp_path, "m.top", 21, model("m.recent"))
    assert behind(tmp_path, "m.recent") == 30 and behind(tmp_path, "m.top") == 20


def test_promises() -> None:
    found = Freshness(100, 1, behind_since=50)
    assert (found.lag(150), found.missed_since(150)) == (100, None)
    assert (found.lag(151), found.missed_since(151)) == (101, 150)
    assert found.lag(40) == 0, "a clock that goes back"
    assert Freshness("downstream", 1, behind_since=50).missed_since(10**6) is None
    runs = [RecordedRun("build", 1, 1, 60.0), RecordedRun("delta", 1, 1, 9.0)]
    runs += [RecordedRun("delta", 1, 1, seconds) for seconds in (0.1, 0.3, 0.2)]
    assert duration(ModelManifest(runs=tuple(runs))) == 300 and duration(ModelManifest(runs=tuple(runs[:1]))) == 60_000
    assert duration(ModelManifest()) == 0


@pytest.mark.parametrize(
    ("text", "ms", "again"),
    [("5 minutes", 300_000, "5 minutes"), ("90s", 90_000, "90 seconds"), ("1.5 h", 5_400_000, "90 minutes")],
)
def test_intervals(text: str, ms: int, again: str) -> None:
    assert parse_target_lag("m.a", text) == ms and format_lag(ms) == again
    assert parse_target_lag("m.a", "Downstream") == "downstream" and parse_target_lag("m.a", None) is None
    assert [lag_text(one) for one in (0, 850, 12_000, 185_000, 7_200_000)] == [
        "0 s",
        "850 ms",
        "12 s",
        "3 min 5 s",
        "2 h",
    ]
