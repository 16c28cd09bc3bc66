"""What a subscriber has after each batch is what the collection holds as of its time."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.core.errors import ConfigError, FrontierError
from dbt_incremental_dd.subscribe.cursor import Cursor, Row
from dbt_incremental_dd.subscribe.subscription import Batch, Start, Subscription
from tests.subscribe.stored import Rows, Stored, rows_of

ROW = st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None]))
STEPS = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.lists(ROW, max_size=3), st.integers(0, 2))), min_size=1, max_size=8
)


def write(stored: Stored, held: Rows, step: list[tuple[int, list[tuple[int, str | None]], int]], upper: int) -> int:
    """One commit of some times, each with rows that come and rows that go; the new upper."""
    changes: dict[int, Rows] = {}
    for gap, inserted, removed in step:
        upper += gap
        change: Rows = changes.setdefault(upper, Counter())
        for row in inserted:
            change[row] += 1
            held[row] += 1
        for row in sorted(held.elements(), key=str)[:removed]:
            change[row] -= 1
            held[row] -= 1
    stored.commit(changes, upper + 1)
    return upper + 1


@settings(max_examples=40)
@given(STEPS, st.data())
def test_batches_add_up_to_the_contents(
    steps: list[list[tuple[int, list[tuple[int, str | None]], int]]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stored, held, upper = Stored(Path(folder)), Counter(), 10
        stored.commit({}, upper)
        followed, has = Subscription(stored.place), Counter()
        for step in steps:
            upper = write(stored, held, step, upper)
            if data.draw(st.booleans(), "polled"):
                has = _applied(stored, has, followed.poll())
            if data.draw(st.booleans(), "resumed") and followed.at != 9:
                followed = Subscription(stored.place, Start(as_of=followed.at, snapshot=False))
        has = _applied(stored, has, followed.poll())
        has = _applied(stored, has, followed.poll())
        assert has == +held == rows_of(stored.collection.as_of())


def _applied(stored: Stored, has: Rows, batch: Batch | None) -> Rows:
    if batch is None:
        return has
    times = batch.updates["dd_time"].to_pylist()
    assert times == sorted(times) and all(t < batch.upper for t in times)
    has = Counter(has)
    for row in batch.updates.to_pylist():
        has[row["k"], row["v"]] += row["dd_diff"]
    assert +has == rows_of(stored.collection.as_of(batch.upper - 1))
    return +has


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """One row at 10, another at 20, the first gone at 30; final up to 35."""
    made = Stored(tmp_path)
    made.commit({10: Counter({(1, "a"): 1})}, 11)
    made.commit({20: Counter({(2, "b"): 1}), 30: Counter({(1, "a"): -1})}, 36)
    return made


A, B = {"k": 1, "v": "a"}, {"k": 2, "v": "b"}


def rows(stored: Stored, progress: bool = False, **start: int | bool) -> list[Row]:
    return Cursor(Subscription(stored.place, Start(**start)), progress=progress).fetch()  # type: ignore[arg-type]


def test_as_of_is_inclusive_with_a_snapshot_and_exclusive_without(stored: Stored) -> None:
    assert rows(stored, as_of=20) == [Row(20, False, 1, A), Row(20, False, 1, B), Row(30, False, -1, A)]
    assert rows(stored, as_of=20, snapshot=False) == [Row(30, False, -1, A)]
    assert rows(stored) == [Row(35, False, 1, B)]
    assert rows(stored, snapshot=False) == []


def test_up_to_is_exclusive_and_ends_it(stored: Stored) -> None:
    assert rows(stored, as_of=15, up_to=30) == [Row(15, False, 1, A), Row(20, False, 1, B)]
    assert rows(stored, as_of=15, up_to=31)[-1] == Row(30, False, -1, A)
    followed = Subscription(stored.place, Start(as_of=15, up_to=31))
    assert len(list(followed)) == 2 and followed.has_ended and followed.wait() is None
    with pytest.raises(ConfigError, match="UP TO has to be later"):
        Subscription(stored.place, Start(as_of=15, up_to=15))


def test_progress_tells_each_advance(stored: Stored) -> None:
    progressed = [row.timestamp for row in rows(stored, progress=True, as_of=15) if row.progressed]
    assert progressed == [16, 36]
    cursor = Cursor(Subscription(stored.place), progress=True)
    assert cursor.fetch() == [Row(35, False, 1, B), Row(36, True, None, None)]
    stored.commit({}, 50)
    assert cursor.fetch() == [Row(50, True, None, None)]


def test_fetching_some_at_a_time_and_waiting(stored: Stored) -> None:
    cursor = Cursor(Subscription(stored.place, Start(as_of=20)))
    assert [len(cursor.fetch(2)) for _ in range(3)] == [2, 1, 0]
    threading.Timer(0.3, lambda: stored.commit({40: Counter({(3, None): 2})}, 41)).start()
    assert cursor.fetch(5, timeout=20) == [Row(40, False, 2, {"k": 3, "v": None})]


def test_a_time_that_is_not_there_yet_is_waited_for(stored: Stored) -> None:
    followed = Subscription(stored.place, Start(as_of=40))
    assert followed.poll() is None
    stored.commit({38: Counter({(3, "c"): 1}), 45: Counter({(4, "d"): 1})}, 46)
    batches = [followed.poll(), followed.poll(), followed.poll()]
    assert [batch and batch.upper for batch in batches] == [41, 46, None]


def test_what_has_been_let_go_is_told(stored: Stored) -> None:
    followed = Subscription(stored.place, Start(as_of=12))
    followed.poll()
    stored.forget(33)
    with pytest.raises(FrontierError, match="since"):
        followed.poll()
    for start in (Start(as_of=12), Start(as_of=32, snapshot=False)):
        with pytest.raises(FrontierError, match="since"):
            Subscription(stored.place, start)
    stored.commit({}, 60)
    with pytest.raises(FrontierError, match="since"):
        Subscription(stored.place, Start(as_of=20))


def test_following_asynchronously(stored: Stored) -> None:
    async def follow() -> list[int]:
        followed = Subscription(stored.place, Start(as_of=15, up_to=42))
        return [batch.upper async for batch in followed]

    threading.Timer(0.3, lambda: stored.commit({}, 50)).start()
    assert asyncio.run(follow()) == [16, 36, 42]


def test_an_open_subscription_holds_history_back(stored: Stored) -> None:
    days = 3 * 86_400_000
    database = Database(stored.place.storage.root)
    with Subscription(stored.place, Start(as_of=20)) as followed:
        followed.poll()
        stored.commit({}, days)
        (status,) = database.status()
        assert status.held_back_by.startswith("subscription of ") and status.reclaimable.age == 20
        assert followed.poll() is not None and followed.poll() is None
        assert database.status()[0].held_back_by == "", "it has read all"
        stored.commit({}, 2 * days)
        assert database.status()[0].held_back_by
    assert database.status()[0].held_back_by == ""
    ended = Subscription(stored.place, Start(as_of=20, up_to=40))
    list(ended)
    assert not list(Path(stored.place.uri, "holds").glob("*.json"))
