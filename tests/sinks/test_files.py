"""Changes as files by time: each once, whatever happens to the publisher."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_incremental_dd.core import failpoints
from dbt_incremental_dd.core.errors import ConfigError, SinkError
from dbt_incremental_dd.sinks.files import PROGRESS, Sink, publish, sink_of
from dbt_incremental_dd.sinks.wanted import Wanted
from tests.fork_server import fork_server
from tests.subscribe.stored import Rows, Stored

_HOUR = 3_600_000
_BEGAN = int(datetime(2024, 5, 1, 12, 59, tzinfo=UTC).timestamp() * 1000)


def main() -> int:
    """A publisher that may be ended: STATE FOLDER STOP_AT."""
    state, folder, stop_at = sys.argv[1:]
    stored = Stored(state)
    failpoints.watch(stop_at)
    publish(stored.collection, Sink(folder), once=True)
    return 0


def _read(folder: Path) -> dict[int, Rows]:
    """The changes of each time, by the files; none may tell of a time twice."""
    found: dict[int, Rows] = {}
    for path in sorted(folder.rglob("*.parquet")):
        t = int(path.stem)
        at = datetime.fromtimestamp(t / 1000, UTC)
        assert path.parent == folder / f"date={at:%Y-%m-%d}" / f"hour={at:%H}"
        assert t not in found
        found[t] = Counter()
        for row in pq.ParquetFile(path).read().to_pylist():
            assert row["dd_time"] == t
            found[t][row["k"], row["v"]] += row["dd_diff"]
    return found


def _change(chance: random.Random, rows: Rows) -> Rows:
    change: Rows = Counter()
    for _ in range(chance.randint(0, 5)):
        row = (chance.randint(0, 20), chance.choice(["a", "b", None]))
        change[row] += 1
    for row in chance.sample(sorted(rows.elements(), key=repr), min(3, rows.total())):
        change[row] -= 1
    rows.update(change)
    return Counter({row: diff for row, diff in change.items() if diff})


def test_publishers_that_are_killed_leave_each_change_once(tmp_path: Path) -> None:
    stored, chance, rows = Stored(tmp_path / "state"), random.Random(3), Counter[tuple[int, str | None]]()
    folder, expected = tmp_path / "out", dict[int, Rows]()
    t = _BEGAN
    points = ("publish: sent", "publish: committed", "publish: sent#2", "")
    for number in range(24):
        for _ in range(chance.randint(1, 3)):
            t += chance.choice([1, 60_000, _HOUR])
            change = _change(chance, rows)
            stored.commit({t: change}, t + 1)
            if change and number:
                expected[t] = change
        if not number:
            expected[t] = +rows
        command = ["tests.sinks.test_files", str(tmp_path / "state"), str(folder), points[number % len(points)]]
        code, told = fork_server("tests.sinks.test_files").call(command, os.environ, Path.cwd())
        assert code in (0, -signal.SIGKILL), told
        if not number:  # its first rows were written, and not noted: they are written again, as of the latest time
            assert code == -signal.SIGKILL and not _noted(folder)
    publish(stored.collection, Sink(str(folder)), once=True)
    found = _read(folder)
    first = min(found)
    assert found[first] == sum((expected[at] for at in sorted(expected) if at <= first), Counter())
    assert {at: change for at, change in found.items() if at > first} == {
        at: change for at, change in expected.items() if at > first
    }


def _noted(folder: Path) -> int | None:
    found: int | None = json.loads((folder / PROGRESS).read_text())["at"]
    return found


def test_lines_of_json(tmp_path: Path) -> None:
    stored, folder = Stored(tmp_path / "state"), tmp_path / "out"
    stored.commit({_BEGAN: Counter({(1, "ü"): 2})}, _BEGAN + 1)
    publish(stored.collection, Sink(str(folder), "json"), once=True)
    (path,) = folder.rglob("date=*/*/*.json")
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"k": 1, "v": "ü", "dd_time": _BEGAN, "dd_diff": 2}
    ]


def test_a_collection_without_rows_begins_with_an_empty_file(tmp_path: Path) -> None:
    stored, folder = Stored(tmp_path / "state"), tmp_path / "out"
    stored.commit({}, _BEGAN)
    publish(stored.collection, Sink(str(folder)), once=True)
    (path,) = folder.rglob("*.parquet")
    assert pq.read_table(path, partitioning=None).schema.names == ["k", "v", "dd_time", "dd_diff"]
    assert pa.parquet.ParquetFile(path).metadata.num_rows == 0


def test_folders_of_others_and_lost_history_are_refused(tmp_path: Path) -> None:
    stored, folder = Stored(tmp_path / "state"), tmp_path / "out"
    stored.commit({_BEGAN: Counter({(1, "a"): 1})}, _BEGAN + 1)
    folder.mkdir()
    (folder / "mine").touch()
    with pytest.raises(SinkError, match=r"has files, and m\.kept was never published to it"):
        publish(stored.collection, Sink(str(folder)), once=True)
    (folder / "mine").unlink()
    publish(stored.collection, Sink(str(folder)), once=True)
    noted = (folder / PROGRESS).read_text()
    (folder / PROGRESS).write_text(noted.replace("m.kept", "m.other"))
    with pytest.raises(SinkError, match=r"has the changes of m\.other, not of m\.kept"):
        publish(stored.collection, Sink(str(folder)), once=True)
    (folder / PROGRESS).write_text("{")
    with pytest.raises(SinkError, match="is damaged"):
        publish(stored.collection, Sink(str(folder)), once=True)
    (folder / PROGRESS).write_text(noted)
    stored.commit({_BEGAN + 5: Counter({(2, "a"): 1})}, _BEGAN + 6)
    stored.forget(_BEGAN + 5)
    with pytest.raises(SinkError, match=r"has no history any more since the last file"):
        publish(stored.collection, Sink(str(folder)), once=True)


def test_settings() -> None:
    assert sink_of(Wanted("s3://b/x/", format="json")) == Sink("s3://b/x", "json")
    with pytest.raises(ConfigError, match="files are of the format 'csv'"):
        sink_of(Wanted("x", format="csv"))
    with pytest.raises(ConfigError, match="publishing to files x takes no key"):
        sink_of(Wanted("x", key=("k",)))
