"""What a log's entries tell of its commits."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.history import history
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow

SCHEMA = Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN))


def test_each_commit_in_turn(tmp_path: Path) -> None:
    place = Storage(str(tmp_path)).collection("m.sums")
    assert history(place) == ()
    log, begun = place.create(SCHEMA), now()
    rows = pa.table({"k": [1, 2], "dd_time": [10, 10], "dd_diff": [1, 1]})
    files = [write_arrow(place.storage, place.trace_uri, rows, SCHEMA) for _ in range(3)]
    log = log.commit(Commit(add=tuple(files[:2]), upper=11))
    log = log.commit(Commit(upper=21))
    log = log.commit(Commit(add=(files[2],), remove=tuple(files[:2]), since=15))
    found = history(place)
    assert [(one.upper, one.since, one.updates, one.files) for one in found] == [
        (0, 0, 0, 0),
        (11, None, 4, 2),
        (21, None, 0, 0),
        (None, 15, 2, -1),
    ]
    assert [one.version for one in history(place, 2)] == [2, 3]
    assert all(begun - 60_000 <= one.committed <= now() for one in found)
    assert found[1].bytes == 2 * files[0].bytes
