"""A store that is slow, throttles, and loses requests and answers: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.trace.layout import Storage
from tests.cluster.conftest import Store
from tests.servers.s3 import S3
from tests.servers.slow_proxy import FAULTS, SlowProxy, slowed
from tests.subscribe.stored import Stored, rows_of

pytestmark = pytest.mark.cluster
ROUNDS = 200
RUNS = int(os.environ.get("DD_FAULTY_RUNS", "200"))


@pytest.fixture
def proxy(store: Store) -> Iterator[SlowProxy]:
    with slowed(store.endpoint) as found:
        yield found


def test_commits_over_a_bad_line(store: Store, proxy: SlowProxy) -> None:
    made = Stored(f"{store.root}/faults", store.through(proxy.endpoint))
    made.commit({1: Counter({(0, "a"): 1})}, 2)
    rows = Counter({(0, "a"): 1})
    proxy.faults = 0.1
    for t in range(2, ROUNDS + 2):
        change = Counter({(t, "b"): 1})
        if t % 3 == 0:
            change[t - 1, "b"] = -1
        try:
            made.commit({t: change}, t + 1)
        except (StateError, OSError):  # it has not become visible, or is the newest one
            log = made.place.log()
            assert log is not None
            if log.frontiers.upper != t + 1:
                continue
        rows.update(change)
    proxy.faults = 0.0
    assert all(proxy.failed[fault] for fault in FAULTS), proxy.failed
    found = Storage(made.place.storage.root, store.options).collection(made.place.name).log()
    assert found is not None
    assert len({file.path for file in found.files}) == len(found.files)
    assert rows_of(made.collection.as_of()) == +rows


def test_runs_over_a_bad_line(s3: S3) -> None:
    """Spark's answer of each model's SQL is compared every 20 runs, of which some have failed."""
    options = {name: value for name, value in s3.options.items() if name != "AWS_ENDPOINT_URL"}
    command = [sys.executable, "-m", "tests.cluster.faulty_runs", f"{s3.root}/runs", json.dumps(options)]
    done = subprocess.run([*command, s3.endpoint, str(RUNS)], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert all(told["faults"][fault] for fault in FAULTS), told
