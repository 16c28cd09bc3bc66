"""A source that clients send events to: its settings, and what an intake makes of events."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.intake import take_in
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.inbox import Inbox
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: dict[str, str | None] = {"id": "bigint", "v": "string", "pos": "int"}
APPEND = {"connector": "http", "envelope": "append"}


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ({"connector": "http"}, COLUMNS, "connector http takes single events, which are no snapshot"),
        (APPEND, {}, "no columns are declared"),
        (APPEND, {"id": "bigint", "v": None}, "column v has no data_type"),
        ({**APPEND, "envelope": "upsert", "key": "id"}, COLUMNS, "needs order_by for envelope upsert"),
        ({**APPEND, "options": {"multiline": "true"}}, COLUMNS, "options.multiLine is not for connector http"),
        ({**APPEND, "remember_keys": "soon"}, COLUMNS, "differential.remember_keys"),
        ({**APPEND, "inbox_bytes": "1GB"}, COLUMNS, "differential.inbox_bytes is '1GB'"),
        ({**APPEND, "path": "in"}, COLUMNS, "path means nothing to connector http"),
    ],
)
def test_settings_that_cannot_be_kept(settings: dict[str, Any], columns: dict[str, str | None], message: str) -> None:
    with pytest.raises(ConfigError, match=f"source s.t: .*{message}"):
        parse_source("s.t", "s.t", settings, columns, "/p")


class Events:
    """A source that takes events."""

    def __init__(self, spark: SparkSession, root: Path, thresholds: Thresholds | None = None, **meta: Any) -> None:
        self.spark, self.storage = spark, Storage(str(root), thresholds=thresholds or Thresholds())
        self.spec = parse_source("s.t", "s.t", {**APPEND, **meta}, COLUMNS, "/p")
        self.inbox = Inbox(self.storage.collection("s.t"))
        self.time, self.keys, self.notes = 100, 0, list[str]()

    def send(self, *lines: str) -> None:
        """One request."""
        self.keys += 1
        assert self.inbox.accept(str(self.keys), "".join(f"{line}\n" for line in lines).encode())

    def take(self) -> int:
        """One intake; how many updates it has made."""
        self.time += 1
        return take_in(LazySession.of(self.spark), self.storage, self.spec, self.time, self.notes.append).rows

    def rows(self, name: str = "s.t") -> Counter[tuple[Any, ...]]:
        """A collection as a multiset."""
        place = self.storage.collection(name)
        log = place.log()
        assert log is not None
        schema = visible_schema(place.read_manifest(log.manifest), log)
        return Counter(tuple(row) for row in contents(self.spark, log, schema, log.frontiers.last).collect())


@pytest.mark.parametrize("thresholds", [Thresholds(), Thresholds(taken_rows=0)], ids=["driver", "spark"])
def test_what_does_not_fit_is_set_aside(spark: SparkSession, tmp_path: Path, thresholds: Thresholds) -> None:
    events = Events(spark, tmp_path, thresholds)
    assert events.take() == 0
    events.send('{"id": 1, "v": "a", "more": 1}', '{"id": "no number"}')
    events.send('{"id": 2, "id": 3}')
    assert events.take() == 1 and events.take() == 0
    assert events.rows() == {(1, "a", None): 1}
    found = events.rows("s.t__malformed")
    assert sorted(record for _, record in found) == ['{"id": "no number"}', '{"id": 2, "id": 3}']
    assert all("/inbox/new/" in file for file, _ in found) and "2 malformed record(s)" in "".join(events.notes)


def test_what_does_not_fit_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    events = Events(spark, tmp_path, malformed="error")
    events.send('{"id": 1}')
    events.send('{"id": "no number"}')
    for _ in range(2):
        with pytest.raises(SourceError, match=r"1 record\(s\) do not fit its columns:\n.*inbox/new/.*no number"):
            events.take()
    assert len(events.inbox.waiting()) == 2


def test_the_latest_event_of_a_key_counts(spark: SparkSession, tmp_path: Path) -> None:
    events = Events(spark, tmp_path, envelope="upsert", key="id", order_by="pos", deleted_when="v = 'gone'")
    for pos, v in ((3, "c"), (1, "a"), (2, "b")):
        events.send(f'{{"id": 1, "v": "{v}", "pos": {pos}}}')
    events.take()
    assert events.rows() == {(1, "c", 3): 1}
    events.send('{"id": 1, "v": "late", "pos": 2}', '{"id": 2, "v": "x", "pos": 1}')
    events.send('{"id": 1, "v": "gone", "pos": 4}')
    events.take()
    assert events.rows() == {(2, "x", 1): 1}


def test_changes_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    """Events of Debezium count by the position in the database's log, those of a changelog by their sum."""
    events = Events(spark, tmp_path / "debezium", envelope="debezium", key="id")
    row = '{{"id": 1, "v": "{}", "pos": 1}}'
    for lsn, op, before, after in ((3, "u", "b", "c"), (1, "c", None, "a"), (2, "u", "a", "b")):
        sides = [
            f'"{name}": {"null" if v is None else row.format(v)}' for name, v in (("before", before), ("after", after))
        ]
        events.send(f'{{"op": "{op}", {", ".join(sides)}, "source": {{"lsn": {lsn}}}, "ts_ms": {lsn}}}')
    events.take()
    assert events.rows() == {(1, "c", 1): 1}
    events = Events(spark, tmp_path / "changelog", envelope="changelog", diff_column="pos")
    events.send('{"id": 1, "v": "a", "pos": 2}', '{"id": 2, "v": "b", "pos": 1}')
    events.send('{"id": 1, "v": "a", "pos": -1}')
    events.take()
    assert events.rows() == {(1, "a"): 1, (2, "b"): 1}
