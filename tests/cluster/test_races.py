"""Two processes commit to one collection in object storage at the same moments: no commit is lost."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.errors import CommitConflict
from dbt_incremental_dd.core.manifest import ModelManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG, STRING
from dbt_incremental_dd.trace.arrow_reader import contents
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow
from tests.cluster.conftest import Store

pytestmark = pytest.mark.cluster

ROUNDS = 100
SCHEMA = Schema((Column("writer", STRING), Column("round", LONG), TIME_COLUMN, DIFF_COLUMN))


def _write(root: str, options: dict[str, str], writer: str, moment: Any, results: Any) -> None:
    """An attempt a round, by everybody from the same version of the log."""
    place = Storage(root, options).collection("m.raced")
    won, lost = [], 0
    for number in range(ROUNDS):
        moment.wait(60)
        log = place.log()
        assert log is not None
        upper = log.frontiers.upper
        row = {"writer": [writer], "round": [number], "dd_time": [upper], "dd_diff": [1]}
        types = pa.schema([("writer", "string"), ("round", "int64"), ("dd_time", "int64"), ("dd_diff", "int64")])
        file = write_arrow(place.storage, place.trace_uri, pa.table(row, types), SCHEMA)
        manifest = place.write_manifest(ModelManifest(schema=Schema(SCHEMA.columns[:2])))
        moment.wait(60)
        try:
            log.commit(Commit(add=(file,), upper=upper + 1, manifest=manifest))
            won.append((number, upper))
        except CommitConflict:
            lost += 1
    results.put((writer, won, lost))


def test_of_two_writers_one_comes_first_a_hundred_times(store: Store) -> None:
    root = f"{store.root}/raced"
    place = Storage(root, store.options).collection("m.raced")
    place.create(SCHEMA)
    processes = multiprocessing.get_context("spawn")
    moment, results = processes.Barrier(2), processes.Queue()
    writers = [
        processes.Process(target=_write, args=(root, store.options, name, moment, results)) for name in ("ann", "bob")
    ]
    for writer in writers:
        writer.start()
    told = [results.get(timeout=300) for _ in writers]
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    committed = Counter((name, number) for name, won, _ in told for number, _ in won)
    assert all(len(won) + lost == ROUNDS for _, won, lost in told)
    log = place.log()
    assert log is not None
    held = contents(place, log.frontiers.last).to_pylist()
    assert Counter({(row["writer"], row["round"]): row["dd_diff"] for row in held}) == committed
    # Everybody went on from what the other had committed: each round has one commit, and each commit a version.
    assert sorted(number for _, number in committed) == list(range(ROUNDS))
    assert log.version == ROUNDS
    assert log.frontiers.upper == ROUNDS
    assert all(won for _, won, _ in told), "one of them has never come first"
