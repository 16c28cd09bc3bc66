"""What is noted of runs: appended by several processes at once, bounded, and read as any collection."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
from pathlib import Path

import pytest

import dbt_incremental_dd
from dbt_incremental_dd.core.profile import OperatorProfile, Phase, Profile
from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.query.engine import QueryEngine
from dbt_incremental_dd.query.session import Session
from dbt_incremental_dd.runtime.request import Outcome, Strategy
from dbt_incremental_dd.runtime.run_log import store
from dbt_incremental_dd.runtime.run_log.columns import OPERATORS, RUNS, SCHEMAS
from dbt_incremental_dd.runtime.run_log.log import RunLog, written_aside
from dbt_incremental_dd.runtime.run_log.store import Batch, Retention, append
from dbt_incremental_dd.runtime.run_log.told import explain_last_run
from dbt_incremental_dd.trace.holds import hold, release
from dbt_incremental_dd.trace.layout import Storage

DAY = 86_400_000
NO_PANDAS = """
import sys
from dbt_incremental_dd.runtime.run_log.store import Batch, Retention, append
from dbt_incremental_dd.trace.layout import Storage

place = Storage(sys.argv[1]).collection("dd_runs")
for n in range(int(sys.argv[3])):
    append(Batch(place, [{"model": sys.argv[2], "began": n}], Retention(10_000, 10**15)))
print({"pandas", "duckdb", "pyarrow.dataset"} & set(sys.modules))
"""


def outcome(model: str, strategy: Strategy = "delta") -> Outcome:
    map = OperatorProfile(0, None, "Map", "Map [n = count]", 0.03, 0.01, 2, 3, 2, 0, 0, 0)
    get = OperatorProfile(1, 0, "Get", "Get shop.orders", 0.02, 0.02, 1, 3, None, 40, 3, 900)
    profile = Profile([Phase("plan", "", 0.0, 0.001), Phase("compute", "", 0.0, 0.03)], (map, get))
    return Outcome(model, strategy, now() - 50, rows_added=2, seconds=0.04, why="a reason", profile=profile)


def noted(storage: Storage, began: int, *models: str) -> None:
    log = RunLog(storage, "one", 30 * DAY)
    for model in models:
        log.succeeded(began, outcome(model))
    log.write()


def held(root: Path, name: str = RUNS) -> list[int]:
    """When the runs began that are there, in order."""
    return sorted(row["began"] for row in dbt_incremental_dd.open(str(root))[name].as_of().to_pylist())


def test_a_run_is_a_row_and_its_operators_are_others(tmp_path: Path) -> None:
    storage, began = Storage(str(tmp_path)), now()
    log = RunLog(storage, "one", 30 * DAY)
    log.succeeded(began, outcome("shop.a"))
    log.succeeded(began, outcome("shop.same", "skip"))
    log.failed("shop.b", began, Profile([Phase("inputs", "", 0.0, 1.5)]), ValueError('a "bad" value\n\u00e9\ud800'))
    log.write()
    log.write()
    database = dbt_incremental_dd.open(str(tmp_path))
    runs = {row["model"]: row for row in database[RUNS].as_of().to_pylist()}
    assert set(runs) == {"shop.a", "shop.b"}
    assert list(database[RUNS].schema.names) == list(SCHEMAS[RUNS].names)
    a, b = runs["shop.a"], runs["shop.b"]
    assert (a["strategy"], a["why"], a["error"], a["unchanged"]) == ("delta", "a reason", None, 1)
    assert a["compute_seconds"] == 0.03 and a["commit_seconds"] is None and a["lag"] >= 50
    assert (b["strategy"], b["error"], b["inputs_seconds"]) == ("failed", 'a "bad" value\n\u00e9?', 1.5)
    assert b["as_of"] is None
    sql = f"SELECT operator, rows_out FROM {OPERATORS} JOIN {RUNS} USING (model, invocation, began) ORDER BY number"
    found = Session(QueryEngine(storage)).select(sql)
    assert [tuple(row.values()) for batch in found.batches for row in batch.to_pylist()] == [("Map", 2), ("Get", None)]
    assert len(database[RUNS].changes()) == 2
    assert database.collections() == [] and database.find(RUNS).name == RUNS


def test_nothing_is_stored_if_all_are_unchanged(tmp_path: Path) -> None:
    log = RunLog(Storage(str(tmp_path)), "one", DAY)
    log.succeeded(now(), outcome("shop.same", "skip"))
    log.write()
    assert list(tmp_path.iterdir()) == []


def test_in_the_background_it_is_stored_at_the_end(tmp_path: Path) -> None:
    with written_aside():
        for began in range(3):
            noted(Storage(str(tmp_path)), began, "shop.a")
    assert held(tmp_path) == [0, 1, 2]
    noted(Storage(str(tmp_path)), 3, "shop.a")
    assert held(tmp_path) == [0, 1, 2, 3]


def test_several_processes_write_at_once_and_import_little(tmp_path: Path) -> None:
    call = [sys.executable, "-c", NO_PANDAS, str(tmp_path)]
    writers = [
        subprocess.Popen([*call, name, "25"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name in ("a", "b")
    ]
    for writer in writers:
        said, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0 and said.strip() == "set()", errors
    assert held(tmp_path) == sorted([*range(25), *range(25)])
    assert len(Storage(str(tmp_path)).collection(RUNS).log().files) < 20  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", range(2))
def test_the_newest_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """By number and by age, whatever order they come in; old ones leave the disk."""
    monkeypatch.setattr(store, "_AT_HAND", 0)
    rng, place = random.Random(seed), Storage(str(tmp_path)).collection(RUNS)
    retention, start = Retention(40, DAY), now() - DAY // 2
    all_began: list[int] = []
    for _ in range(60):
        batch = [start + rng.randrange(1000) + len(all_began) * 1000 for _ in range(rng.randrange(1, 4))]
        all_began += batch
        append(Batch(place, [{"model": "m", "began": began} for began in batch], retention))
        found = held(tmp_path)
        assert found == sorted(all_began)[-len(found) :]
        assert min(len(all_began), 40) <= len(found) <= 40 + 10 + 3
    data = list(Path(place.trace_uri, "data").rglob("*.parquet"))
    assert len(data) < 40, "former files are gone"
    assert len(list(Path(place.trace_uri, "_delta_log").iterdir())) < 60


def test_old_rows_go_by_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten days; looked at once a day."""
    place, start = Storage(str(tmp_path)).collection(RUNS), now()
    for days_ago in (40, 12, 8):
        append(Batch(place, [{"model": "m", "began": start - days_ago * DAY}], Retention(40, 10 * DAY)))
    assert len(held(tmp_path)) == 3, "the day has not passed"
    monkeypatch.setattr(store, "now", lambda: start + DAY + 60_000)
    append(Batch(place, [{"model": "m", "began": start}], Retention(40, 10 * DAY)))
    assert held(tmp_path) == [start - 8 * DAY, start]


def test_a_reader_that_is_behind_sees_rows_come_and_go(tmp_path: Path) -> None:
    place = Storage(str(tmp_path)).collection(RUNS)
    append(Batch(place, [{"model": "m", "began": now()}], Retention(8, DAY)))
    log = place.log()
    assert log is not None
    hold(place, "r", log.frontiers.last, "a test", now() + DAY)
    for _ in range(30):
        append(Batch(place, [{"model": "m", "began": now()}], Retention(8, DAY)))
    database = dbt_incremental_dd.open(str(tmp_path))
    seen = database[RUNS].as_of(log.frontiers.last)["dd_diff"].to_pylist()
    seen += database[RUNS].changes(log.frontiers.last)["dd_diff"].to_pylist()
    assert sum(seen) == len(held(tmp_path)) <= 11 and -1 in seen
    release(place, "r")


def test_a_damaged_log_begins_anew(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    noted(storage, 1, "shop.a")
    for entry in Path(storage.collection(RUNS).trace_uri, "_delta_log").glob("*.json"):
        entry.write_bytes(b"")
    noted(storage, 2, "shop.a")
    assert held(tmp_path) == [2]


def test_a_damaged_file_begins_anew_when_it_is_read(tmp_path: Path) -> None:
    """Files are read when sixteen of them are merged."""
    storage = Storage(str(tmp_path))
    for began in range(16):
        noted(storage, began, "shop.a")
    for file in Path(storage.collection(OPERATORS).trace_uri, "data").glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:100])
    noted(storage, 16, "shop.a")
    assert held(tmp_path) == list(range(17))
    assert held(tmp_path, OPERATORS) == [16, 16]


def test_what_cannot_be_stored_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "collections").write_text("in the way")
    with caplog.at_level(logging.WARNING):
        noted(Storage(str(tmp_path)), 1, "shop.a")
        noted(Storage(str(tmp_path)), 2, "shop.a")
    assert len([one for one in caplog.records if RUNS in one.getMessage()]) == 1


def test_the_last_run_as_text(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    noted(storage, 1_000_000_000_000, "shop.a", "shop.b")
    noted(storage, 1_000_000_001_000, "shop.a")
    text = explain_last_run(storage, "shop.a")
    assert text.splitlines()[0] == "shop.a: delta: a reason, 0.040 s, began 2001-09-09 01:46:41"
    assert "Phases: plan 0.001 s, compute 0.030 s" in text
    table = text.splitlines()[-3:]
    assert table[2].startswith("  Get")
    assert [" ".join(line.split()) for line in table] == [
        "operator seconds own calls rows in rows out rows read bytes read",
        "Map [n = count] 0.030 0.010 2 3 2 0 0 B",
        "Get shop.orders 0.020 0.020 1 3 ? 40 900 B",
    ]
