"""Many followers of one collection: each has all of it, one of them reads, and those that are late are caught up."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from dbt_incremental_dd.api import Database
from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.serve.hub import Follower, Hub
from dbt_incremental_dd.subscribe import reads
from dbt_incremental_dd.subscribe.selection import Selection
from dbt_incremental_dd.subscribe.shape import Shape
from dbt_incremental_dd.subscribe.subscription import Batch, Start
from dbt_incremental_dd.trace.holds import holds
from tests.subscribe.stored import Rows, Stored


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    made = Stored(tmp_path)
    made.commit({10: Counter({(1, "a"): 1, (2, "b"): 2})}, 11)
    return made


def apply(has: Rows, batch: Batch) -> None:
    for row in batch.updates.to_pylist():
        has[row["k"], row["v"]] += row["dd_diff"]


def test_all_of_them_have_all_of_it(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    files_read = 0
    read = reads.changes

    def counted(*arguments: object) -> object:
        nonlocal files_read
        files_read += 1
        return read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reads, "changes", counted)

    async def one(hub: Hub, until: int) -> Rows:
        has: Rows = Counter()
        async with hub.follow(stored.collection, Start(), Shape()) as follower:
            while (batch := await follower.batch()) is not None:
                apply(has, batch)
                if batch.timestamp >= until:
                    return +has
        raise AssertionError("it has ended")

    async def all_of_them() -> list[Rows]:
        hub = Hub(Database(stored.place.storage.root))
        followers = [asyncio.create_task(one(hub, 60)) for _ in range(50)]
        while hub.followers.get("m.kept") != 50:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        for t in (20, 30, 40, 50, 60):
            await asyncio.to_thread(
                stored.commit, {t: Counter({(t, "n"): 1, (t - 10, "n"): -1 if t > 20 else 0})}, t + 1
            )
            await asyncio.sleep(0.02)
        found = await asyncio.wait_for(asyncio.gather(*followers), 30)
        assert hub.followers == {}
        return found

    found = asyncio.run(all_of_them())
    assert all(has == {(1, "a"): 1, (2, "b"): 2, (60, "n"): 1} for has in found)
    assert files_read <= 20
    assert holds(stored.place.storage) == {}


def test_who_is_late_gets_one_batch_summed_up(stored: Stored) -> None:
    async def late() -> list[Batch]:
        hub = Hub(Database(stored.place.storage.root))
        async with hub.follow(stored.collection, Start(), Shape()) as follower:
            first = await follower.batch()
            for t in range(20, 120, 10):
                await asyncio.to_thread(
                    stored.commit, {t: Counter({(t, "n"): 1, (t - 10, "n"): -1 if t > 20 else 0})}, t + 1
                )
                while follower.shared.frontiers().last < t:
                    await asyncio.sleep(0.01)
            second = await follower.batch()
            assert first and second and await follower.batch(0.2) is None
            return [first, second]

    first, second = asyncio.run(late())
    assert first.after is None and second.after == 10 and second.timestamp == 110
    assert second.updates.to_pylist() == [{"k": 110, "v": "n", "dd_time": 110, "dd_diff": 1}]


def test_who_goes_on_from_before_gets_each_time(stored: Stored) -> None:
    stored.commit({20: Counter({(3, "c"): 1}), 30: Counter({(3, "c"): -1})}, 41)

    async def resumed() -> Batch | None:
        hub = Hub(Database(stored.place.storage.root))
        async with hub.follow(stored.collection, Start(as_of=10, snapshot=False), Shape()) as follower:
            return await follower.batch()

    batch = asyncio.run(resumed())
    assert batch and [one.timestamp for one in batch.times()] == [20, 30, 40]
    assert [one.after for one in batch.times()] == [10, 20, 30]


def test_random_changes_and_followers(stored: Stored) -> None:
    """Followers that come and go, each slow or fast, with shapes of their own, have at the end what there is."""
    rng = random.Random(5)
    shapes = [Shape(), Shape(Selection("select k, v from kept where k % 2 = 0"))]

    async def one(hub: Hub, shape: Shape, pause: float) -> tuple[Shape, Rows]:
        has: Rows = Counter()
        async with hub.follow(stored.collection, Start(), shape) as follower:
            while follower.subscription.at < 400:
                batch = await follower.batch()
                assert batch is not None and min((*has.values(), 0)) >= 0
                apply(has, batch)
                await asyncio.sleep(pause)
        return shape, +has

    async def run() -> tuple[Rows, list[tuple[Shape, Rows]]]:
        hub, held, followers = Hub(Database(stored.place.storage.root)), Counter({(1, "a"): 1, (2, "b"): 2}), []
        for t in range(20, 401, 10):
            if t % 40 == 0:
                followers.append(asyncio.create_task(one(hub, rng.choice(shapes), rng.choice([0, 0.01, 0.3]))))
            change: Rows = Counter({(rng.randint(0, 5), "n"): 1, (rng.randint(0, 5), None): 2})
            change.subtract(dict.fromkeys(rng.sample(sorted(held, key=str), 1), 1))
            held.update(change)
            held = +held
            await asyncio.to_thread(stored.commit, {t: change}, t + 1)
            await asyncio.sleep(0.01)
        return held, await asyncio.wait_for(asyncio.gather(*followers), 60)

    held, found = asyncio.run(run())
    assert len(found) == 10
    for shape, has in found:
        assert has == (held if shape.selection is None else {row: n for row, n in held.items() if row[0] % 2 == 0})


def test_a_collection_that_goes_ends_its_followers_alone(stored: Stored, tmp_path: Path) -> None:
    async def followed() -> None:
        hub = Hub(Database(stored.place.storage.root))
        async with hub.follow(stored.collection, Start(), Shape()) as follower:
            await follower.batch()
            stored.place.remove()
            with pytest.raises(StateError, match=r"m\.kept is gone"):
                await asyncio.wait_for(_to_the_end(follower), 20)

    asyncio.run(followed())


async def _to_the_end(follower: Follower) -> None:
    while await follower.batch() is not None:
        pass
