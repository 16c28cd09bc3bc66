"""Rows leave a source once their event is longer ago than ``keep``, and models over it forget them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.runtime.request import ModelConfig, ModelRequest
from dbt_incremental_dd.runtime.run import Run
from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.sources import keep
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.intake import Intake, take_in
from dbt_incremental_dd.trace.arrow_reader import contents
from dbt_incremental_dd.trace.layout import Storage
from tests.open_table.written import Written
from tests.time_zone import time_zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 86_400_000
START = 19_700 * DAY
"""An ms since 1970, at midnight."""
TYPES: dict[str, Callable[[int], Any]] = {
    "date": lambda t: moment(t).strftime("%Y-%m-%d"),
    "timestamp": lambda t: moment(t).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    "timestamp_ntz": lambda t: moment(t).strftime("%Y-%m-%dT%H:%M:%S.%f"),
    "bigint": lambda t: t,
}


def moment(t: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=t)


class Forgetting:
    """A source in a folder, and the rows that it should have: (id, k, event time in ms)."""

    def __init__(
        self,
        folder: Path,
        dtype: str = "bigint",
        session: LazySession | None = None,
        thresholds: Thresholds | None = None,
        **meta: Any,
    ) -> None:
        self.folder, self.session = folder, session or Written.session()
        self.storage = Storage(str(folder / "state"), thresholds=thresholds or Thresholds())
        (folder / "in").mkdir()
        self.meta = {"path": "in", "format": "json", "envelope": "append", "event_time": "at", "keep": "3 days", **meta}
        self.dtype, self.time, self.files = dtype, START, 0
        self.expected: list[tuple[int, int, int | None]] = []
        self.notes: list[str] = []

    @property
    def spec(self) -> Any:
        columns = {"id": "bigint", "k": "int", "x": "double", "at": self.dtype}
        return parse_source("s.t", "`s`.`t`", self.meta, columns, str(self.folder))

    @property
    def threshold(self) -> int:
        """As documented: rounded down to a thirtieth."""
        step = 3 * DAY // 30
        return (self.time - 3 * DAY) // step * step

    def put(self, *rows: tuple[int, int, int | None]) -> None:
        """A file of rows."""
        self.files += 1
        at = TYPES[self.dtype]
        lines = [{"id": id, "k": k, "x": id / 3, "at": None if t is None else at(t)} for id, k, t in rows]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (self.folder / "in" / f"{self.files:04}.json").write_text(text)
        known = (lambda t: t // DAY * DAY) if self.dtype == "date" else (lambda t: t)
        self.expected += [(id, k, t) for id, k, t in rows if t is None or known(t) >= self.threshold]

    def take(self) -> Intake:
        """One intake at the present time."""
        taken = take_in(self.session, self.storage, self.spec, self.time, self.notes.append)
        self.forget()
        return taken

    def forget(self) -> None:
        """What should have left at the present time."""
        known = (lambda t: t // DAY * DAY) if self.dtype == "date" else (lambda t: t)
        self.expected = [row for row in self.expected if row[2] is None or known(row[2]) >= self.threshold]

    def ids(self) -> Counter[int]:
        table = contents(self.storage.collection("s.t"), self.time)
        found: Counter[int] = Counter()
        for row in table.to_pylist():
            found[row["id"]] += row["dd_diff"]
        return found

    def check(self) -> None:
        """The rows are those that there should be."""
        assert self.ids() == Counter(id for id, _, _ in self.expected)
        assert self.stored_rows == len(self.expected)

    @property
    def stored_rows(self) -> int | None:
        """How many there are, as the manifest says."""
        place = self.storage.collection("s.t")
        log = place.log()
        assert log is not None
        manifest = place.read_manifest(log.manifest)
        assert manifest is not None
        return manifest.rows

    def some(self, chance: random.Random) -> list[tuple[int, int, int | None]]:
        """Rows of about the present time: some twice, some late, some too late, some without a time."""
        rows: list[tuple[int, int, int | None]] = []
        for _ in range(chance.randrange(1, 6)):
            age = chance.choice([0, 0, 0, 1, 2, 3, 4]) * DAY + chance.randrange(DAY)
            t = None if chance.random() < 0.05 else max(self.time - 1 - age, 0)
            rows += [(chance.randrange(10**6), chance.randrange(3), t)] * chance.choice([1, 1, 1, 2])
        return rows


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[LazySession | None, Thresholds]]:
    """Everything on the driver, without a session; or everything in Spark, whatever its time zone is."""
    if request.param == "driver":
        yield None, Thresholds()
        return
    spark: SparkSession = request.getfixturevalue("spark")
    with time_zone(spark, "America/New_York"):
        yield LazySession.of(spark), Thresholds(found_rows=0, local_rows=0)


ROUNDS = [
    *(("driver", dtype) for dtype in ("date", "timestamp", "bigint")),
    *(("spark in New York", dtype) for dtype in TYPES),
]
"""Of a time without a zone Spark computes when it is due."""


@pytest.mark.parametrize(("engine", "dtype"), ROUNDS, indirect=["engine"])
def test_random_rounds(tmp_path: Path, dtype: str, engine: tuple[LazySession | None, Thresholds]) -> None:
    session, thresholds = engine
    chance = random.Random(dtype)
    source = Forgetting(tmp_path, dtype, session, thresholds)
    late = 0
    for _ in range(20 if session is None else 6):
        source.time += chance.choice([1_000, DAY // 20, DAY // 3, DAY, 2 * DAY])
        before = len(source.expected)
        rows = source.some(chance)
        source.put(*rows)
        late += before + len(rows) - len(source.expected)
        source.take()
        source.check()
        source.time += 1
        assert source.take().rows == 0 or source.threshold > (source.time - 1 - 3 * DAY) // (DAY // 10) * (DAY // 10)
        source.check()
    told = [int(note.split(": ")[-1].split(" record")[0]) for note in source.notes if "too late" in note]
    assert sum(told) == late > 0


@pytest.mark.parametrize(("engine", "dtype"), ROUNDS, indirect=["engine"])
def test_the_threshold_to_the_millisecond(
    tmp_path: Path, dtype: str, engine: tuple[LazySession | None, Thresholds]
) -> None:
    """Rows around the threshold leave or stay, and come too late or in time, wherever the session is."""
    source = Forgetting(tmp_path, dtype, *engine)
    threshold, hour = START + DAY // 2, DAY // 24
    rows = [(place, 0, threshold + offset) for place, offset in enumerate([-6 * hour, -1, 0, 1, 6 * hour, 12 * hour])]
    source.time = START + DAY + hour
    source.put(*rows)
    source.take()
    assert set(source.ids()) == set(range(6))
    source.time = threshold + 3 * DAY
    assert source.threshold == threshold
    source.put(*((place + 10, k, t) for place, k, t in rows))
    source.take()
    stay = {5} if dtype == "date" else {2, 3, 4, 5}
    assert set(source.ids()) == {*stay, *(place + 10 for place in stay)}
    source.check()


MODELS = {
    "kept.counted": "SELECT k, count(*) AS n, max(id) AS last FROM s.t GROUP BY k",
    "kept.ranked": "SELECT id, k, rank() OVER (PARTITION BY k ORDER BY id) AS place FROM s.t",
    "kept.pairs": "SELECT a.id, b.id AS other FROM s.t a JOIN s.t b ON a.k = b.k AND a.id < b.id",
}


def batch(rows: list[tuple[int, int, int | None]]) -> dict[str, Counter[tuple[Any, ...]]]:
    """What the models are over these rows."""
    by_k = {k: sorted(id for id, other, _ in rows if other == k) for k in {k for _, k, _ in rows}}
    return {
        "kept.counted": Counter((k, len(ids), max(ids)) for k, ids in by_k.items()),
        "kept.ranked": Counter((id, k, ids.index(id) + 1) for k, ids in by_k.items() for id in ids),
        "kept.pairs": Counter((a, b) for ids in by_k.values() for a in ids for b in ids if a < b),
    }


def test_models_forget_as_a_full_rebuild_would(spark: SparkSession, tmp_path: Path) -> None:
    chance, session = random.Random(3), LazySession.of(spark)
    spark.sql("CREATE SCHEMA IF NOT EXISTS kept")
    source = Forgetting(tmp_path, "timestamp", session, retain_history="1 day")
    shrunk = 0
    for number in range(5):
        source.time += DAY
        source.put(*source.some(chance))
        before = len(source.expected)
        source.forget()
        shrunk += len(source.expected) < before
        run = Run(session, source.storage, f"run{number}", source.time, lambda line: None)
        for name, sql in MODELS.items():
            schema, _, identifier = name.partition(".")
            request = ModelRequest(name, f"`{schema}`.`{identifier}`", sql, ModelConfig(), {"s.t": source.spec})
            assert run.model(request).strategy != "rebuild"
        source.check()
        database = Database(source.storage.root)
        for name, wanted in batch(source.expected).items():
            found: Counter[tuple[Any, ...]] = Counter()
            for row in database[name].as_of().to_pylist():
                diff = row.pop("dd_diff")
                found[tuple(row.values())] += diff
            assert found == wanted, name
    assert shrunk > 1


@pytest.mark.parametrize("dtype", ["timestamp", "bigint"])
def test_the_disk_shrinks(tmp_path: Path, dtype: str) -> None:
    """After compaction and vacuum a source takes what its rows take, however much has gone through it."""
    source = Forgetting(tmp_path, dtype, retain_history="1 hour")
    sizes, history = [], []
    for day in range(1, 13):
        source.time = START + day * DAY
        source.put(*((day * 10_000 + n, n % 3, source.time - 1 - n * DAY // 500) for n in range(500)))
        source.take()
        source.check()
        for _ in compact(source.session, source.storage):
            pass
        for _ in vacuum(source.storage, older_than=0):
            pass
        trace = source.folder / "state" / "collections" / "s.t" / "trace"
        sizes.append(sum(file.stat().st_size for file in trace.rglob("*.parquet") if "_delta_log" not in file.parts))
        log = source.storage.collection("s.t").log()
        assert log is not None
        history.append(sum(file.rows for file in log.files))
    assert max(history[4:]) <= 500 * 5
    assert max(sizes[4:]) < 2 * sizes[3]


def test_only_files_of_the_time_that_leaves_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    read_range = keep.read_range

    def noting(storage: Storage, uri: str, files: Any, *rest: Any) -> Any:
        read.append(len(files))
        return read_range(storage, uri, files, *rest)

    monkeypatch.setattr(keep, "read_range", noting)
    source = Forgetting(tmp_path)
    for hour in range(0, 24 * 5, 2):
        source.time = START + hour * DAY // 24
        source.put((hour, 0, source.time - 1))
        source.take()
    source.check()
    # A threshold moves ten times a day; before anything is old enough no file is opened at all.
    assert 15 <= len(read) <= 21 and max(read) <= 4
    read.clear()
    source.time += 1_000
    manifest = source.take().log.manifest
    for _ in range(5):
        source.time += 1_000
        assert source.take().log.manifest == manifest
    assert len(read) <= 1


def test_keep_is_set_and_changed_later(tmp_path: Path) -> None:
    source = Forgetting(tmp_path, keep=None, event_time=None)
    for day in range(10):
        source.put((day, 0, START - day * DAY))
    source.put((99, 0, None))
    source.time = START + 1
    source.take()
    assert set(source.ids()) == {*range(10), 99}
    left: list[set[int]] = []
    for text in ("5 days", "8 days", "2 days", None, "2 days"):
        source.meta |= {"keep": text, "event_time": "at"}
        source.time += 1_000
        if text is None:  # so that it is committed: what was forgotten before is looked for once more
            source.put((0, 0, START))
        source.take()
        left.append(set(source.ids()))
        assert source.stored_rows == source.ids().total()
    five, two = {*range(6), 99}, {*range(3), 99}
    assert left == [five, five, two, two, two], "what has left does not come back"
    # While more was kept than before, older rows came in, which leave later.
    source.meta |= {"keep": "8 days"}
    source.put((7, 0, START - 7 * DAY))
    source.time += 1_000
    source.take()
    assert set(source.ids()) == {*two, 7}
    source.meta |= {"keep": "2 days"}
    source.time += 1_000
    source.take()
    assert set(source.ids()) == two


def test_a_time_before_all_times(tmp_path: Path) -> None:
    source = Forgetting(tmp_path, "timestamp", keep="9000000 days")
    source.put((1, 0, 5), (2, 0, None))
    assert source.take().rows == 2


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"event_time": None}, r"source s\.t: differential\.keep needs differential\.event_time"),
        ({"envelope": "upsert", "key": "id"}, r"source s\.t: keep is for envelope append, not for upsert"),
        ({"keep": "a month"}, r"source s\.t: differential\.keep: 'a month' is not a duration"),
        ({"keep": "0 days"}, r"source s\.t: differential\.keep is '0 days'"),
        ({"keep": -5}, r"source s\.t: differential\.keep is -5"),
    ],
)
def test_settings_that_cannot_be_kept(tmp_path: Path, meta: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        _ = Forgetting(tmp_path, **meta).spec


@pytest.mark.parametrize(
    ("event_time", "message"),
    [
        ("id + 1", r"with keep, event_time must be a column, and 'id \+ 1' is none of id, k, x, at"),
        ("k", r""),
    ],
)
def test_an_event_time_that_is_no_column(tmp_path: Path, event_time: str, message: str) -> None:
    source = Forgetting(tmp_path, event_time=event_time)
    source.put((1, 0, 5))
    if message:
        with pytest.raises(ConfigError, match=f"source s.t: {message}"):
            source.take()
    else:
        source.take()


def test_an_event_time_of_another_type(spark: SparkSession, tmp_path: Path) -> None:
    source = Forgetting(tmp_path, session=LazySession.of(spark), event_time="x")
    source.put((1, 0, 5))
    with pytest.raises(ConfigError, match=r"source s\.t: event_time is 'x', of type double"):
        source.take()
    assert replace(source.spec, event_time="at").keep == 3 * DAY
