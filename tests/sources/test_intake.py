"""Sources taken in: every envelope against a plain replay of its records, and every bad input against its error."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError, DifferentialError, SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.verify import contents
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.connectors.lake import data_files
from dbt_incremental_dd.sources.intake import Intake, take_in
from dbt_incremental_dd.trace.columns import visible_schema
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {"id": "bigint", "v": "string", "pos": "int"}


class Reader:
    """A source in a folder; ``take`` brings it one step further, ``rows`` are its contents."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        columns: dict[str, Any] | None = None,
        *,
        thresholds: Thresholds | None = None,
        **meta: Any,
    ) -> None:
        self.spark = spark
        self.folder = folder
        self.storage = Storage(str(folder / "state"), thresholds=thresholds or Thresholds())
        (folder / "in").mkdir(exist_ok=True)
        settings = {"path": "in", "format": "json", **meta}
        self.spec = parse_source("s.t", "s.t", settings, COLUMNS if columns is None else columns, str(folder))
        self.time = 100
        self.notes: list[str] = []

    def write(self, name: str, records: list[Any]) -> None:
        """A file of JSON lines; a record that is a string is written as it is."""
        lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
        (self.folder / "in" / name).write_text("".join(f"{line}\n" for line in lines))

    def take(self) -> Intake:
        """One intake at the next time."""
        self.time += 1
        return take_in(LazySession.of(self.spark), self.storage, self.spec, self.time, self.notes.append)

    def rows(self) -> Counter[tuple[Any, ...]]:
        """The collection as a multiset."""
        place = self.storage.collection("s.t")
        log = place.log()
        assert log is not None
        manifest = place.read_manifest(log.manifest)
        frame = contents(self.spark, log, visible_schema(manifest, log), log.frontiers.last)
        found = Counter(tuple(row) for row in frame.collect())
        assert manifest is not None and manifest.rows == found.total()
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of one test."""
    yield tmp_path


def record(id: Any, v: Any = "a", pos: Any = 1) -> dict[str, Any]:
    """One record."""
    return {"id": id, "v": v, "pos": pos}


def test_append_counts_each_file_once(spark: SparkSession, folder: Path) -> None:
    reader = Reader(spark, folder, envelope="append")
    reader.write("1 ü#%.json", [record(1), record(1), record(2, None)])
    assert reader.take().rows == 3
    assert reader.take().rows == 0
    reader.write("2.json", [record(3)])
    reader.write("_hidden.json", [record(9)])
    assert reader.take().rows == 1
    assert reader.rows() == Counter({(1, "a", 1): 2, (2, None, 1): 1, (3, "a", 1): 1})


def test_growing_file_is_read_from_where_it_was_left(spark: SparkSession, folder: Path) -> None:
    reader = Reader(spark, folder, envelope="append", path="in/log.jsonl")
    path = folder / "in" / "log.jsonl"
    path.write_text('{"id": 1, "v": "a", "pos": 1}\n{"id": 2, "v"')
    assert reader.take().rows == 1
    path.write_text(path.read_text() + ': "b", "pos": 2}\n')
    assert reader.take().rows == 1
    assert reader.take().rows == 0
    assert reader.rows() == Counter({(1, "a", 1): 1, (2, "b", 2): 1})
    path.write_text('{"id": 7, "v": "z", "pos": 1}\n')
    with pytest.raises(SourceError, match="replaced or cut"):
        reader.take()
    assert sum(reader.rows().values()) == 2


@pytest.mark.parametrize("seed", range(3))
def test_upsert_equals_a_replay(spark: SparkSession, folder: Path, seed: int) -> None:
    """Late records, deletes, repeated files' worth of keys; the latest position of a key counts."""
    rng = random.Random(seed)
    reader = Reader(spark, folder, envelope="upsert", key="id", order_by="pos", deleted_when="v = 'gone'")
    known: dict[int, tuple[int, str | None]] = {}
    for step in range(5):
        positions = rng.sample(range(1, 200), 8)
        records = [record(rng.randint(1, 5), rng.choice(["a", "b", None, "gone"]), p) for p in positions]
        reader.write(f"{step}.json", records)
        reader.take()
        for r in records:
            if r["id"] not in known or r["pos"] > known[r["id"]][0]:
                known[r["id"]] = (r["pos"], r["v"])
        alive = {(id, v, pos) for id, (pos, v) in known.items() if v != "gone"}
        assert reader.rows() == Counter(dict.fromkeys(alive, 1)), f"seed {seed}, step {step}"


@pytest.mark.parametrize("seed", range(3))
def test_debezium_equals_the_database(spark: SparkSession, folder: Path, seed: int) -> None:
    """Events in any order of files, delivered twice, with tombstones and the payload wrapper."""
    rng = random.Random(seed)
    reader = Reader(spark, folder, {"id": "bigint", "amount": "decimal(12,2)"}, envelope="debezium", key=["id"])
    table: dict[int, str] = {}
    lsn, sent = 0, [""]
    for step in range(5):
        events: list[str] = rng.sample(sent, min(3, len(sent)))
        for _ in range(8):
            lsn += 1
            id = rng.randint(1, 5)
            before = {"id": id, "amount": table[id]} if id in table else None
            if before and rng.random() < 0.4:
                del table[id]
                op, after = "d", None
            else:
                table[id] = f"{rng.randint(0, 999)}.25"
                op, after = ("u" if before else "c"), {"id": id, "amount": table[id]}
            event = {"before": before, "after": after, "op": op, "ts_ms": lsn, "source": {"lsn": lsn, "ts_ms": lsn}}
            events.append(json.dumps({"payload": event} if rng.random() < 0.3 else event))
            if op == "d":
                events.append("null")
        sent += events
        reader.write(f"{step}.json", events)
        reader.take()
        found = Counter({(id, str(amount)): n for (id, amount), n in reader.rows().items()})
        assert found == Counter(dict.fromkeys(table.items(), 1)), f"seed {seed}, step {step}"


def test_changelog_by_number_and_by_name(spark: SparkSession, folder: Path) -> None:
    reader = Reader(spark, folder, {**COLUMNS, "d": "int"}, envelope="changelog", diff_column="d")
    reader.write("1.json", [{**record(1), "d": 2}, {**record(2), "d": 1}])
    reader.take()
    reader.write("2.json", [{**record(1), "d": -1}, {**record(2), "d": -1}])
    reader.take()
    assert reader.rows() == Counter({(1, "a", 1): 1})
    reader.write("3.json", [{**record(1), "d": None}])
    with pytest.raises(SourceError, match="column d holds None"):
        reader.take()


def test_a_changelog_may_call_its_number_as_the_engine_does(spark: SparkSession, folder: Path) -> None:
    columns = {"id": "bigint", "at": "bigint", "dd_diff": "int"}
    reader = Reader(spark, folder, columns, envelope="changelog", diff_column="dd_diff", event_time="at")
    reader.write("1.json", [{"id": 1, "at": 5, "dd_diff": 2}, {"id": 2, "at": 102, "dd_diff": 3}])
    reader.take()
    assert reader.rows() == Counter({(1, 5): 2})
    reader.write("2.json", [{"id": 1, "at": 6, "dd_diff": 1}, {"id": 1, "at": 5, "dd_diff": -1}])
    reader.time = 200
    reader.take()
    assert reader.rows() == Counter({(1, 5): 1, (1, 6): 1, (2, 102): 3})
    reader.write("3.json", [{"id": 1, "at": 6, "dd_diff": None}])
    with pytest.raises(SourceError, match="column dd_diff holds None"):
        reader.take()


def test_snapshot_of_a_table_and_its_fingerprint(spark: SparkSession, folder: Path) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS snap")
    spark.sql("DROP TABLE IF EXISTS snap.t")
    spark.sql("CREATE TABLE snap.t USING parquet AS SELECT * FROM VALUES (1, 'a'), (1, 'a'), (2, NULL) AS t(k, s)")
    spec = parse_source("snap.t", "snap.t", {}, {}, str(folder))
    storage = Storage(str(folder / "state"))
    assert take_in(LazySession.of(spark), storage, spec, 1, print).rows == 3
    assert take_in(LazySession.of(spark), storage, spec, 2, print).rows == 0
    spark.sql("INSERT OVERWRITE snap.t SELECT * FROM VALUES (1, 'a'), (3, 'c') AS t(k, s)")
    taken = take_in(LazySession.of(spark), storage, spec, 3, print)
    frame = contents(spark, taken.log, taken.schema, 3)
    assert Counter(tuple(r) for r in frame.collect()) == Counter({(1, "a"): 1, (3, "c"): 1})
    spark.sql("DROP TABLE snap.t")
    with pytest.raises(SourceError, match=r"snap\.t"):
        take_in(LazySession.of(spark), storage, spec, 4, print)


def test_delta_table_by_its_log(spark: SparkSession, folder: Path) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    path = str(folder / "delta")
    write_deltalake(path, pa.table({"k": [1, 2, 3], "p": ["x", "x", "y"]}), partition_by=["p"])
    spec = parse_source("d.t", "d.t", {"path": path, "format": "delta"}, {}, str(folder))
    storage = Storage(str(folder / "state"))
    assert take_in(LazySession.of(spark), storage, spec, 1, print).rows == 3
    assert take_in(LazySession.of(spark), storage, spec, 2, print).rows == 0
    write_deltalake(path, pa.table({"k": [4], "p": ["y"]}), mode="append")
    DeltaTable(path).delete("k = 1")
    taken = take_in(LazySession.of(spark), storage, spec, 3, print)
    assert taken.rows == 2, "only what changed is stored"
    frame = contents(spark, taken.log, taken.schema, 3)
    assert Counter(tuple(r) for r in frame.collect()) == Counter({(2, "x"): 1, (3, "y"): 1, (4, "y"): 1})


def test_a_delta_file_that_is_written_anew_is_compared_on_the_driver(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, write_deltalake

    path, storage = str(folder / "delta"), Storage(str(folder / "state"))
    count = 2 * storage.thresholds.taken_rows
    write_deltalake(path, pa.table({"k": range(count), "v": [float(k % 7) for k in range(count)]}))
    spec = parse_source("d.t", "d.t", {"path": path, "format": "delta"}, {}, str(folder))
    assert take_in(LazySession.of(spark), storage, spec, 1, print).rows == count
    DeltaTable(path).update(predicate="k IN (5, 70000)", updates={"v": "v + 1"})
    DeltaTable(path).delete("k = 6")
    monkeypatch.setattr(data_files, "_read", None)
    taken = take_in(LazySession.of(spark), storage, spec, 2, print)
    assert taken.rows == 5
    frame = contents(spark, taken.log, taken.schema, 2).where("k IN (5, 6, 7, 70000)")
    assert Counter(tuple(r) for r in frame.collect()) == Counter({(5, 6.0): 1, (7, 0.0): 1, (70000, 1.0): 1})


def test_malformed_records_are_an_error_or_set_aside(spark: SparkSession, folder: Path) -> None:
    reader = Reader(spark, folder, envelope="append")
    reader.write("1.json", [record(1), '{"id": 2, "v": ', record("no number")])
    with pytest.raises(SourceError, match=r"2 record\(s\) do not fit.*\n.*1\.json") as caught:
        reader.take()
    assert "set_aside" in caught.value.remedy
    assert reader.storage.collection("s.t").log() is None
    aside = Reader(spark, folder, envelope="append", malformed="set_aside")
    aside.take()
    assert aside.rows() == Counter({(1, "a", 1): 1})
    log = aside.storage.collection("s.t__malformed").log()
    assert log is not None and sum(file.rows for file in log.files) == 2
    assert "2 malformed" in aside.notes[0]


BAD = {
    "null key": ([record(None)], {"envelope": "upsert", "key": "id"}, "key column id is NULL in 1"),
    "no such key": ([record(1)], {"envelope": "upsert", "key": "nope"}, "no column nope; there are id, v, pos"),
    "no such order": ([record(1)], {"envelope": "upsert", "key": "id", "order_by": "at"}, "no column at"),
    "unknown op": (
        [{"before": None, "after": record(1), "op": "x"}],
        {"envelope": "debezium", "key": "id"},
        "op 'x' cannot be applied",
    ),
    "nothing there": (None, {"envelope": "append", "path": "elsewhere"}, "nothing at .*elsewhere"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_commits_nothing(spark: SparkSession, folder: Path, case: str) -> None:
    records, meta, message = BAD[case]
    reader = Reader(spark, folder, **meta)
    if records is not None:
        reader.write("1.json", records)
    with pytest.raises(SourceError, match=rf"source s\.t: .*{message}"):
        reader.take()
    log = reader.storage.collection("s.t").log()
    assert log is None or log.manifest is None


def test_after_a_bad_input_the_next_good_one_succeeds(spark: SparkSession, folder: Path) -> None:
    reader = Reader(spark, folder, envelope="upsert", key="id")
    reader.write("1.json", [record(1)])
    reader.take()
    reader.write("2.json", [record(None), record(2)])
    with pytest.raises(SourceError):
        reader.take()
    assert reader.rows() == Counter({(1, "a", 1): 1})
    reader.write("2.json", [record(1, "b"), record(2)])
    reader.take()
    assert reader.rows() == Counter({(1, "b", 1): 1, (2, "a", 1): 1})


def test_changed_file_and_changed_type(spark: SparkSession, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    reader = Reader(spark, folder, {}, envelope="append", format="parquet")
    pq.write_table(pa.table({"k": [1]}), folder / "in" / "1.parquet")
    reader.take()
    pq.write_table(pa.table({"k": ["text"]}), folder / "in" / "2.parquet")
    with pytest.raises(SourceError, match=r"column k of .*2\.parquet is string, so far it was long"):
        reader.take()
    (folder / "in" / "2.parquet").unlink()
    pq.write_table(pa.table({"k": [1, 2, 3]}), folder / "in" / "1.parquet")
    with pytest.raises(SourceError, match="has changed since it was taken in"):
        reader.take()


def test_parquet_of_other_writers(spark: SparkSession, folder: Path) -> None:
    """Strings as views and as large strings are strings; a dictionary too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    reader = Reader(spark, folder, {}, envelope="append", format="parquet")
    kinds = [pa.string(), pa.string_view(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
    for i, kind in enumerate(kinds):
        values = pa.array([f"v{i}", None], pa.string())
        values = values.dictionary_encode().cast(kind) if i == 3 else values.cast(kind)
        pq.write_table(pa.table({"k": [i, i], "v": values}), folder / "in" / f"{i}.parquet")
        assert reader.take().rows == 2
    assert reader.rows() == Counter({(i, v): 1 for i in range(4) for v in (f"v{i}", None)})


WRONG_SETTINGS = {
    "unknown key": ({"envelop": "append"}, "unknown setting differential.envelop", "Did you mean envelope"),
    "unknown envelope": ({"envelope": "upserts"}, "envelope is 'upserts'", "Did you mean upsert"),
    "upsert without key": ({"envelope": "upsert"}, "needs differential.key", "key: [id]"),
    "path without format": ({"path": "x"}, "path needs a format", "parquet"),
    "changelog without column": ({"envelope": "changelog"}, "diff_column or differential.op_column", "Name the column"),
    "unknown format": ({"path": "x", "format": "orc"}, "format is 'orc'", "parquet"),
}


@pytest.mark.parametrize("case", WRONG_SETTINGS)
def test_wrong_settings(case: str) -> None:
    meta, message, remedy = WRONG_SETTINGS[case]
    with pytest.raises(ConfigError) as caught:
        parse_source("s.t", "s.t", meta, {}, "/")
    assert message in caught.value.message and "s.t" in caught.value.message
    assert remedy in caught.value.remedy
    assert isinstance(caught.value, DifferentialError)


def test_files_that_lie_elsewhere_now_are_the_same_files(spark: SparkSession, folder: Path) -> None:
    source = Reader(spark, folder, envelope="append")
    (folder / "in" / "b").mkdir()
    source.write("a.json", [{"id": 1}])
    source.write("b/a.json", [{"id": 2}])
    source.take()
    (folder / "in").rename(folder / "there")
    source.spec = replace(source.spec, path=str(folder / "there"))
    (folder / "there" / "c.json").write_text('{"id": 3}\n')
    source.take()
    assert sorted(row[0] for row in source.rows()) == [1, 2, 3]
