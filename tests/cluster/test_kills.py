"""A writer is ended, as by SIGKILL, wherever what is stored in object storage changes: nothing is lost, nothing is
doubled, and the next writer needs nobody.

Some points by default, each in two acts at most; all of them with ``DD_ALL_KILLS=1``.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from dbt_incremental_dd.trace.damage import damage
from dbt_incremental_dd.trace.layout import Storage
from tests.cluster import killed
from tests.cluster.conftest import Store
from tests.cluster.killed import contents
from tests.fork_server import fork_server
from tests.subscribe.stored import Stored, rows_of

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
ACTS = ("commit", "advance", "merge", "compact", "vacuum", "hold")
BEFORE = {"merge": ("commit", "commit", "commit"), "compact": ("commit",), "vacuum": ("commit", "compact")}
"""What gives an act something to do."""
EXPECTED = {
    *("commit: before", "commit: done", "file: before", "file: written", "manifest: before", "manifest: written"),
    *("checkpoint: before", "checkpoint: written", "compaction: written", "compaction: recent files written"),
    *("vacuum: before a file", "small file: written", "small file: replaced", "log: before", "log: created"),
}
FEW = 1
"""Points of an act that are ended by default."""


def writer(root: str, store: Store, *acts: str, stop_at: str = "") -> int:
    """The exit code of a process that does these acts. ``stop_at``: where it is ended before them."""
    command = [killed.__name__, root, json.dumps(store.options), stop_at, *acts]
    code, told = fork_server(killed.__name__).call(command, os.environ, ROOT)
    assert code in (0, -signal.SIGKILL), told[-4000:]
    return code


def points(root: str, store: Store, noted: Path, *acts: str) -> list[tuple[str, int]]:
    """Each point that the last act reaches, and some time that it does."""
    noted.unlink(missing_ok=True)
    assert writer(root, store, *acts[:-1], f"{acts[-1]}>{noted}") == 0
    counts = Counter(noted.read_text().splitlines() if noted.exists() else ())
    rng = random.Random(acts[-1])
    chosen = [(point, rng.randint(1, count)) for point, count in sorted(counts.items())]
    return chosen if os.environ.get("DD_ALL_KILLS") else rng.sample(chosen, min(FEW, len(chosen)))


def require_exact(root: str, store: Store) -> None:
    """What is stored is what was committed up to the frontier, at each time that can be read; no file is missing."""
    place = Storage(root, store.options).collection("m.kept")
    log = place.log()
    assert log is not None and damage(place.storage, log, contents=True) is None
    collection = Stored(root, store.options).collection
    for t in {log.frontiers.last, max(log.frontiers.since, log.frontiers.last - 1)}:
        assert rows_of(collection.as_of(t)) == contents(t), t


def test_a_writer_that_is_ended_is_made_up_for(store: Store, tmp_path: Path) -> None:
    root, ended = f"{store.root}/kills", set()
    for point in ("log: before", "log: created"):
        made = f"{root}/{point[5:]}"
        assert writer(made, store, stop_at=point) == -signal.SIGKILL
        assert writer(made, store, "commit") == 0
        require_exact(made, store)
        ended.add(point)
    for number, (point, which) in enumerate(points(f"{root}/noted", store, tmp_path / "noted", "commit")):
        made = f"{root}/first{number}"
        assert writer(made, store, f"commit@{point}#{which}") == -signal.SIGKILL
        assert writer(made, store, "commit") == 0
        require_exact(made, store)
        ended.add(point)
    for act in ACTS:
        before = BEFORE.get(act, ())
        for point, which in points(root, store, tmp_path / "noted", *before, act):
            for number in (which, 1):  # another time it may not come to the point so often
                is_ended = writer(root, store, *before, f"{act}@{point}#{number}") == -signal.SIGKILL
                require_exact(root, store)
                if is_ended:
                    ended.add(point)
                    break
    assert writer(root, store, "commit", "compact", "vacuum") == 0
    require_exact(root, store)
    if os.environ.get("DD_ALL_KILLS"):
        assert ended >= EXPECTED, EXPECTED - ended
