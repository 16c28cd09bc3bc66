"""Logs in object storage, of which this process or this machine knows a former version."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote

import pytest

from dbt_incremental_dd.core.errors import CommitConflict
from dbt_incremental_dd.trace import log_loader
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.log import KNOWN, Log
from tests.cluster.conftest import Store
from tests.servers.slow_proxy import SlowProxy, slowed
from tests.subscribe.stored import Stored

pytestmark = pytest.mark.cluster

COMMIT = """
import json, sys
from collections import Counter
from tests.subscribe.stored import Stored
made = Stored(sys.argv[1], json.loads(sys.argv[2]))
for t in range(int(sys.argv[3]), int(sys.argv[4])):
    made.commit({t: Counter({(t, "other"): 1})}, t + 1)
"""


@pytest.fixture
def proxy(store: Store) -> Iterator[SlowProxy]:
    with slowed(store.endpoint) as found:
        yield found


@pytest.fixture
def stored(store: Store, proxy: SlowProxy, request: pytest.FixtureRequest) -> Stored:
    made = Stored(f"{store.root}/{request.node.originalname}", store.through(proxy.endpoint))
    made.commit({10: Counter({(1, "a"): 1, (2, "b"): 3})}, 11)
    return made


def parts(log: Log | None) -> object:
    assert log is not None
    return log.version, log.files, log.frontiers, log.manifest, log.schema


def another_process(stored: Stored, first: int, last: int) -> None:
    storage = stored.place.storage
    command = [sys.executable, "-c", COMMIT, storage.root, json.dumps(dict(storage.options)), str(first), str(last)]
    subprocess.run(command, check=True)


def test_others_commits_are_read_entry_by_entry(stored: Stored, proxy: SlowProxy) -> None:
    another_process(stored, 20, 23)
    proxy.take()
    found = stored.place.log()
    requests = [(method, unquote(path).rsplit("/", 1)[-1]) for method, path, _ in proxy.take()]
    assert {method for method, _ in requests} <= {"GET", "HEAD"}
    others = [path for _, path in requests if not path.endswith(".json")]
    assert len(others) == 1 and "checkpoint" not in others[0], "one list of what is new"
    KNOWN.forget(stored.place.trace_uri)
    assert parts(found) == parts(log_loader.load("m.kept", stored.place.trace_uri, stored.place.storage.options))


def test_a_new_process_asks_twice(stored: Stored, proxy: SlowProxy) -> None:
    known = stored.place.log()
    another_process(stored, 20, 21)  # it leaves its note
    KNOWN.forget(stored.place.trace_uri)
    proxy.take()
    found = stored.place.log()
    assert len(proxy.take()) == 2
    assert known is not None and found is not None and found.version == known.version + 1


def test_a_log_that_was_made_anew_is_another(stored: Stored) -> None:
    stored.commit({20: Counter({(3, "c"): 1})}, 21)
    before = stored.place.log()
    storage = stored.place.storage
    stored.place.remove()
    another_process(stored, 10, 12)
    for forget in (False, True):
        if forget:
            KNOWN.forget(stored.place.trace_uri)
        found = Storage(storage.root, storage.options).collection("m.kept").log()
        assert before is not None and found is not None
        assert not {file.path for file in before.files} & {file.path for file in found.files}


def test_a_run_asks_for_all_at_once(stored: Stored, proxy: SlowProxy) -> None:
    stored.place.storage.write_small("collections/m.kept/shown.json", "{}")
    stored.place.storage.read_small("collections/m.kept/shown.json")
    assert stored.place.arrangements() == ()
    storage = stored.place.storage.for_run()
    proxy.take()
    place = storage.collection("m.kept")
    assert parts(place.log()) == parts(stored.place.log())
    assert storage.read_small("collections/m.kept/shown.json") == "{}"
    assert place.arrangements() == ()
    assert len(proxy.take()) == 1, "that of the other storage"
    log = place.log()
    assert log is not None
    place.arrangement("k").create(log.schema)
    assert place.arrangements() == (place.arrangement("k"),)
    stored.place.storage.write_small("collections/m.kept/shown.json", "[]")
    assert storage.read_small("collections/m.kept/shown.json") == "[]"


def test_a_frontier_is_on_its_way_and_awaited_by_whoever_needs_it(stored: Stored, proxy: SlowProxy) -> None:
    log = stored.place.log()
    assert log is not None
    proxy.delay = 0.3
    started = time.monotonic()
    assert log.advance(40).frontiers.upper == 40
    assert time.monotonic() - started < 0.2
    proxy.delay = 0.0
    found = stored.place.log()
    assert found is not None and found.frontiers.upper == 40
    another_process(stored, 50, 51)
    late = found.advance(60)
    for _ in range(2):  # it does not matter who is told first
        with pytest.raises(CommitConflict):
            late.await_entry()
    with pytest.raises(CommitConflict):
        stored.place.log()
    log = stored.place.log()
    assert log is not None and log.frontiers.upper == 51, "what was not stored is not known"
