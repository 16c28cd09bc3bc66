"""Topics as sources: every envelope against a plain replay of its messages, in each of the ways in which they are read."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.sources.connectors.kafka import client, in_spark
from tests.feeds.kafka import Reader, Writer, kafka, spark, spec_of
from tests.servers.kafka import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["kafka", "spark"]
pytestmark = pytest.mark.kafka
WAYS = ("client", "files", "spark")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How messages are read: by the client alone, by way of files, by Spark's connector."""
    asked: list[str] = []
    read = in_spark.read

    def noted(*given: Any) -> Any:
        asked.append("spark")
        found = read(*given)
        assert found is not None, "the session has no connector"
        return found if request.param == "spark" else None

    monkeypatch.setattr(in_spark, "read", noted)
    if request.param != "client":
        few = Thresholds(local_rows=1, taken_rows=1, probed_rows=1, found_rows=1)
        monkeypatch.setattr(Reader, "thresholds", few)
        monkeypatch.setattr(client, "_AT_A_TIME", 5)
    yield request.param
    assert bool(asked) is (request.param != "client")


def topic(kafka: Broker, name: str, partitions: int = 3, **settings: str) -> str:
    """A new one."""
    kafka.create(name, partitions, {key.replace("_", "."): value for key, value in settings.items()})
    return name


def test_append(spark: SparkSession, kafka: Broker, tmp_path: Path, way: str) -> None:
    name = topic(kafka, f"append-{way}")
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, envelope="append"))
    writer, expected = Writer(kafka, name), Counter[tuple[Any, ...]]()
    assert reader.take().rows == 0
    for step in range(4):
        rows = [
            (n, random.Random(n).choice(["a", 'ü "x"\\', "", None]), n % 7) for n in range(step * 20, step * 20 + 20)
        ]
        rows += rows[:2]
        writer.send(*((None, dict(zip(("id", "v", "n"), row, strict=True))) for row in rows))
        expected.update(rows)
        assert reader.take().rows >= 20
        assert reader.rows() == expected
    assert reader.take().rows == 0 and reader.rows() == expected


@pytest.mark.parametrize("key_format", ["string", "json"])
def test_upsert(spark: SparkSession, kafka: Broker, tmp_path: Path, way: str, key_format: str) -> None:
    """By the message's key, whatever the value says; NULL values delete."""
    name = topic(kafka, f"upsert-{key_format}-{way}")
    key = ["id"] if key_format == "string" else ["id", "v"]
    options = {"key.format": key_format}
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, envelope="upsert", key=key, options=options))
    writer, known, rng = Writer(kafka, name), {}, random.Random(3)
    for _ in range(3):
        messages = []
        for _ in range(30):
            id, v, n = rng.randint(1, 12), rng.choice("ab"), rng.choice([None, *range(100)])
            is_gone = rng.random() < 0.3
            if key_format == "string":
                identity, told = id, str(id)
                known.pop(identity, None)
                row = (id, v, n)
            else:
                identity, told = (id, v), {"id": id, "v": v}
                known.pop(identity, None)
                row = (id, v, n)
            if not is_gone:
                known[identity] = row
            # The value needs not repeat the key.
            value = {"v": v, "n": n} if key_format == "string" else {"n": n, "id": 77}
            messages.append((told, None if is_gone else value))
        writer.send(*messages)
        reader.take()
        assert reader.rows() == Counter(known.values())


def test_debezium(spark: SparkSession, kafka: Broker, tmp_path: Path, way: str) -> None:
    """With the tombstones that follow deletes, and events that are delivered again."""
    name = topic(kafka, f"debezium-{way}")
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, envelope="debezium", key="id"))
    writer, known, rng, lsn = Writer(kafka, name), {}, random.Random(5), 0
    for step in range(3):
        messages: list[tuple[Any, Any]] = []
        for _ in range(20):
            lsn += 1
            id = rng.randint(1, 9)
            before, after = known.get(id), {"id": id, "v": rng.choice("xyz"), "n": lsn}
            if before and rng.random() < 0.4:
                after = None
            event = {"before": before, "after": after, "op": "d" if after is None else "u" if before else "c"}
            event |= {"source": {"lsn": lsn}, "ts_ms": lsn}
            messages.append(({"id": id}, {"payload": event} if step % 2 else event))
            messages += [({"id": id}, None)] if after is None else []
            known.pop(id, None)
            known |= {id: after} if after else {}
        writer.send(*messages, *messages[-3:])
        reader.take()
        assert reader.rows() == Counter((row["id"], row["v"], row["n"]) for row in known.values())


def test_changelog_of_csv(spark: SparkSession, kafka: Broker, tmp_path: Path, way: str) -> None:
    name = topic(kafka, f"changelog-{way}")
    meta = {"envelope": "changelog", "diff_column": "n", "format": "csv", "options": {"sep": ";"}}
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, **meta))
    writer = Writer(kafka, name)
    writer.send((None, "1;a;2"), (None, '2;"x;y";1'))
    reader.take()
    writer.send((None, "1;a;-1"))
    reader.take()
    assert reader.rows() == Counter({(1, "a"): 1, (2, "x;y"): 1})


def test_types_and_malformed_messages_are_the_same_in_all_ways(
    spark: SparkSession, kafka: Broker, tmp_path: Path, way: str
) -> None:
    name = topic(kafka, f"types-{way}", 1)
    columns = {
        "id": "bigint",
        "at": "timestamp",
        "d": "decimal(9,2)",
        "f": "double",
        "s": "struct<a:int,b:array<string>>",
    }
    bad = ["{", '{"id": "x"}', '[{"id": 1}]', "17", b"\xff\xfe", "null"]
    bad += ['{"f": 1e400, "id": 3}', '{"id": 5, "id": 6}', '{"id": 7} x']
    good = ['{"id": 1, "at": "2024-01-01T10:00:00Z", "d": 1.5, "f": 2, "s": {"a": 1, "b": ["x", null]}}']
    good += [
        '\n{\n"id": 2, "d": "7.25"\n}\n',
        '{"id": 3, "more": [1]}',
        "{}",
    ]
    spec = spec_of(kafka.servers, name, columns, envelope="append", malformed="set_aside")
    reader = Reader(spark, tmp_path, spec)
    Writer(kafka, name).send(*((None, text) for text in [*good, *bad]), (None, ""), (None, None))
    reader.take()
    lines = tmp_path / "lines.json"
    lines.write_text("\n".join(" ".join(text.split("\n")) for text in good))
    ddl = ", ".join(map(" ".join, columns.items()))
    expected = Counter(repr(tuple(row)) for row in spark.read.schema(ddl).json(str(lines)).collect())
    assert reader.rows(key=repr) == expected
    aside = dict(reader.rows("s.t__malformed"))
    offsets = sorted(int(file.split("@")[1]) for file, _ in aside)
    assert offsets == [*range(len(good), len(good) + len(bad)), len(good) + len(bad) + 1]
    assert all(file.startswith(f"{name}[0]@") for file, _ in aside)


@pytest.mark.parametrize("columns", ["declared", "found"])
def test_keys_that_are_none(spark: SparkSession, kafka: Broker, tmp_path: Path, way: str, columns: str) -> None:
    name = topic(kafka, f"keys-{way}-{columns}", 1)
    declared = COLUMNS_OF[columns]
    meta = {"envelope": "upsert", "key": "id", "malformed": "set_aside"}
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, declared, **meta))
    Writer(kafka, name).send(("1", {"id": 1, "v": "a", "n": 1}), (None, {"id": 2}), ("x1", {"id": 3}), (b"\xff", None))
    reader.take()
    # Columns that are found come in the order of their names.
    assert reader.rows() == Counter({(1, "a", 1) if columns == "declared" else (1, 1, "a"): 1})
    assert sorted(file for file, _ in reader.rows("s.t__malformed")) == [f"{name}[0]@{n}" for n in (1, 2, 3)]


COLUMNS_OF = {"declared": {"id": "bigint", "v": "string", "n": "int"}, "found": {}}


def test_aborted_transactions_never_show(spark: SparkSession, kafka: Broker, tmp_path: Path, way: str) -> None:
    """Nor open ones; what lies behind an open one waits for it."""
    name = topic(kafka, f"aborted-{way}", 2)
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, envelope="append"))
    one, other = Writer(kafka, name, f"one-{way}"), Writer(kafka, name)
    rows = [{"id": n, "v": "a", "n": n} for n in range(40)]
    one.transaction([(None, row) for row in rows[:10]])
    one.transaction([(None, row) for row in rows[10:20]], commit=False)
    reader.take()
    assert sorted(row[0] for row in reader.rows()) == list(range(10))
    one.producer.begin_transaction()
    one.send(*((str(n), row) for n, row in enumerate(rows[20:30])))
    other.send(*((str(n), row) for n, row in enumerate(rows[30:])))
    reader.take()
    assert sorted(row[0] for row in reader.rows()) == list(range(10))
    one.end(commit=False)
    reader.take()
    assert sorted(row[0] for row in reader.rows()) == [*range(10), *range(30, 40)]
    one.transaction([(None, row) for row in rows[10:20]], commit=False)
    assert reader.take().rows == 0


def test_new_partitions_are_read_from_their_beginning(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    from confluent_kafka.admin import NewPartitions

    name = topic(kafka, "partitions", 1)
    reader, writer = Reader(spark, tmp_path, spec_of(kafka.servers, name, envelope="append")), Writer(kafka, name)
    writer.send(*((None, {"id": n}) for n in range(5)))
    reader.take()
    admin = kafka.admin()
    admin.create_partitions([NewPartitions(name, 4)])[name].result(30)
    writer = Writer(kafka, name)
    for partition in range(4):
        writer.send(*((None, {"id": 10 * (partition + 1) + n}) for n in range(3)), partition=partition)
    reader.take()
    assert sorted(row[0] for row in reader.rows()) == [0, 1, 2, 3, 4, 10, 11, 12, 20, 21, 22, 30, 31, 32, 40, 41, 42]


def test_columns_as_first_found(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    name = topic(kafka, "found", 2)
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, {}, envelope="append"))
    writer = Writer(kafka, name)
    writer.send((None, {"a": 1, "b": "x"}), (None, {"a": 2, "c": {"d": 1.5}}))
    reader.take()
    assert reader.rows() == Counter({(1, "x", None): 1, (2, None, (1.5,)): 1})
    writer.send((None, {"a": 3, "e": 1}))
    reader.take()
    assert (3, None, None) in reader.rows()


def test_event_time(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """Messages wait until their time has come."""
    name = topic(kafka, "events", 1)
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, envelope="append", event_time="id"))
    Writer(kafka, name).send(*((None, {"id": n, "v": "a", "n": n}) for n in (1, 101, 102, 103, None)))
    for expected in ([1, None], [1, 101, None], [1, 101, 102, None]):
        reader.take()
        assert sorted((row[0] for row in reader.rows()), key=str) == expected


def test_from_the_end(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    name = topic(kafka, "latest", 2)
    writer = Writer(kafka, name)
    writer.send((None, {"id": 1}))
    options = {"auto.offset.reset": "latest"}
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, envelope="append", options=options))
    reader.take()
    writer.send((None, {"id": 2}))
    reader.take()
    assert [row[0] for row in reader.rows()] == [2]


def test_large_messages_do_not_gather_on_the_driver(
    spark: SparkSession, kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few, and yet written to files as they come."""
    monkeypatch.setattr(client, "_BYTES_AT_A_TIME", 100_000)
    name = topic(kafka, "large", 2)
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, name, envelope="append"))
    writer = Writer(kafka, name)
    for n in range(30):
        writer.send((None, json.dumps({"id": n, "v": "x" * 50_000})))
    assert reader.take().rows == 30
    assert sorted(row[0] for row in reader.rows()) == list(range(30))
