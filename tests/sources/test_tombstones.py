"""What was deleted stays deleted, whatever of the collection is left: its files may all be gone, its tombstones not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.parquet import checksum
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from tests.sources.test_intake import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = Callable[[str, int], dict[str, Any]]


def row_event(op: str, position: int) -> dict[str, Any]:
    """A record of an upsert."""
    return {"id": 1, "v": "gone" if op == "d" else "a", "pos": position}


def database_event(op: str, position: int) -> dict[str, Any]:
    """The same as Debezium tells it."""
    row = {"id": 1, "v": "a", "pos": position}
    sides = {"before": row, "after": None} if op == "d" else {"before": None, "after": row}
    return {"op": op, "source": {"lsn": position, "ts_ms": 1}, "ts_ms": 1, **sides}


ENVELOPES: dict[str, tuple[dict[str, Any], Event]] = {
    "upsert": ({"envelope": "upsert", "key": "id", "order_by": "pos", "deleted_when": "v = 'gone'"}, row_event),
    "debezium": ({"envelope": "debezium", "key": "id"}, database_event),
}
HISTORIES = {
    "deleted later": [[("c", 5)], [("d", 9)]],
    "deleted at once": [[("c", 5), ("d", 9)]],
    "only the delete came": [[("d", 9)]],
}


@pytest.mark.parametrize(
    ("envelope", "history", "where"),
    [
        *(("upsert", history, "driver") for history in HISTORIES),
        ("upsert", "only the delete came", "Spark"),
        *(("debezium", history, "driver") for history in HISTORIES),
    ],
)
def test_a_delete_outlives_the_rows(
    spark: SparkSession, tmp_path: Path, envelope: str, history: str, where: str
) -> None:
    settings, event = ENVELOPES[envelope]
    thresholds = Thresholds(taken_rows=0) if where == "Spark" else Thresholds()
    reader = Reader(spark, tmp_path, thresholds=thresholds, **settings)
    batches = HISTORIES[history]
    for number, batch in enumerate(batches):
        reader.write(f"{number}.json", [event(*what) for what in batch])
        reader.take()
    assert list(compact(LazySession.of(spark), reader.storage, retain_history=0))
    log = reader.storage.collection("s.t").log()
    assert log is not None and not log.files
    reader.write("again.json", [event("c", 5)])
    reader.take()
    assert not reader.rows()
    reader.write("new.json", [event("c", 12)])
    reader.take()
    assert list(reader.rows().values()) == [1]


def test_tombstones_that_are_damaged_are_told_as_what_is_stored(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, **ENVELOPES["upsert"][0])
    reader.write("0.json", [row_event("c", 5), row_event("d", 9)])
    reader.take()
    (file,) = reader.storage.collection("s.t").inner("tombstones").log().files  # type: ignore[union-attr]
    path = Path(reader.storage.collection("s.t").inner("tombstones").uri) / file.path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    checksum._checked.cache_clear()
    reader.write("1.json", [row_event("c", 5)])
    with pytest.raises(StateError, match=r"what is stored of source s\.t is damaged: file .*tombstones") as refused:
        reader.take()
    assert "take the source in anew" in refused.value.remedy
