"""The inbox of a source, on a disk and in an object store: many clients repeat requests while a reader takes them in."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.storage import created
from dbt_incremental_dd.trace.inbox import Inbox, InboxSettings
from dbt_incremental_dd.trace.layout import Storage


@pytest.fixture(params=["disk", "memory"])
def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> Inbox:
    root = str(tmp_path) if request.param == "disk" else f"memory:///{tmp_path.name}"
    return Inbox(Storage(root).collection("s.t"))


def test_settings(inbox: Inbox) -> None:
    assert inbox.settings() is None
    for settings in (InboxSettings(1, 2), InboxSettings(3, 4)):
        inbox.declare(settings)
        assert inbox.settings() == settings


def test_settings_that_cannot_be_read(tmp_path: Path) -> None:
    found = Inbox(Storage(str(tmp_path)).collection("s.t"))
    found.declare(InboxSettings(1, 2))
    (tmp_path / "collections" / "s.t" / "inbox.json").write_text('{"remember": 1}')
    with pytest.raises(StateError, match=r"s\.t/inbox\.json cannot be read"):
        found.settings()


def test_each_key_is_read_once_with_what_was_accepted(inbox: Inbox) -> None:
    """Clients send one of two contents with each key, over and over; what is accepted is what is read."""
    accepted: dict[str, set[bytes]] = {}
    read: Counter[bytes] = Counter()
    guard, stop = threading.Lock(), threading.Event()

    def client(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(60):
            key = str(chance.randrange(40))
            data = f"{key} {chance.choice('aaab')}".encode()
            if inbox.accept(key, data):
                with guard:
                    accepted.setdefault(key, set()).add(data)

    def reader() -> None:
        while True:
            is_last = stop.is_set()
            names = inbox.waiting()
            repeated = inbox.repeated(names)
            for name in names.keys() - repeated:
                data = created.read(f"{inbox.new}/{name}", {})
                assert data is not None
                read[data] += 1
            inbox.discard(repeated)
            inbox.put_away(names.keys() - repeated)
            if is_last:
                return

    with ThreadPoolExecutor(7) as pool:
        reading = pool.submit(reader)
        for one in [pool.submit(client, seed) for seed in range(6)]:
            one.result()
        stop.set()
        reading.result()
    assert len(accepted) == 40
    assert read == Counter(data for contents in accepted.values() for data in contents)
    assert all(len(contents) == 1 for contents in accepted.values())
    assert not inbox.waiting()


def test_a_name_is_nothing_that_a_client_has_chosen(inbox: Inbox) -> None:
    for key in ("../../x", "a/b", "\udcff", "", "." * 300):
        assert inbox.accept(key, b"{}")
    assert len(inbox.waiting()) == 5
