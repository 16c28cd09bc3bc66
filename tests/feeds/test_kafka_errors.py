"""What cannot work is refused, and what is gone is said to be gone: no message is skipped in silence."""

from __future__ import annotations

import builtins
import itertools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.sources.change_token import change_token, poll_interval
from tests.feeds.kafka import Reader, Writer, kafka, spark, spec_of
from tests.servers.kafka import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["kafka", "spark"]
pytestmark = pytest.mark.kafka


def rows(*ids: int) -> list[tuple[Any, Any]]:
    return [(str(id), {"id": id, "v": "a", "n": id}) for id in ids]


def test_malformed_messages_are_named(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    kafka.create("malformed", 2)
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, "malformed", envelope="append"))
    Writer(kafka, "malformed").send(*rows(1), (None, '{"id": "no number"}'), (None, None), partition=1)
    with pytest.raises(SourceError, match=r"2 record\(s\) do not fit.*\n.*malformed\[1\]@1: .*no number.*\n.*\[1\]@2"):
        reader.take()
    assert reader.storage.collection("s.t").log() is None


def test_a_missing_key_is_named(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    kafka.create("keyless", 1)
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, "keyless", envelope="upsert", key="id"))
    Writer(kafka, "keyless").send(*rows(1), (None, {"id": 2}), ('{"id": 3}', {"id": 3}))
    with pytest.raises(
        SourceError, match=r"(?s)2 record.*keyless\[0\]@1: as key id it has NULL.*@2: as key id it has \{"
    ):
        reader.take()


def test_messages_that_are_gone(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """By retention, or by hand."""
    from confluent_kafka import TopicPartition

    kafka.create("retained", 1)
    reader, writer = (
        Reader(spark, tmp_path, spec_of(kafka.servers, "retained", envelope="append")),
        Writer(kafka, "retained"),
    )
    writer.send(*rows(1, 2))
    reader.take()
    writer.send(*rows(3, 4, 5))
    gone = TopicPartition("retained", 0, 2)
    admin = kafka.admin()
    for future in admin.delete_records([gone]).values():
        future.result(30)
    assert reader.take().rows == 3
    writer.send(*rows(6, 7))
    for future in admin.delete_records([TopicPartition("retained", 0, 6)]).values():
        future.result(30)
    for _ in range(2):
        with pytest.raises(SourceError, match="from offset 5 of partition 0 on are gone, which begins at 6 now"):
            reader.take()
    assert sorted(row[0] for row in reader.rows()) == [1, 2, 3, 4, 5]


def test_a_topic_that_was_made_again(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """Also where it has as many messages as before."""
    kafka.create("again", 1)
    reader = Reader(spark, tmp_path, spec_of(kafka.servers, "again", envelope="append"))
    Writer(kafka, "again").send(*rows(1, 2))
    reader.take()
    before = change_token(reader.storage, reader.spec)
    kafka.delete("again")
    with pytest.raises(SourceError, match="there is no topic again at 127"):
        reader.take()
    kafka.create("again", 1)
    Writer(kafka, "again").send(*rows(3, 4))
    with pytest.raises(SourceError, match="is not the one that was taken in so far"):
        reader.take()
    assert change_token(reader.storage, reader.spec) != before


def test_another_topic(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    for name in ("first", "other"):
        kafka.create(name, 1)
    Reader(spark, tmp_path, spec_of(kafka.servers, "first", envelope="append")).take()
    other = Reader(spark, tmp_path, spec_of(kafka.servers, "other", envelope="append"))
    other.time += 10
    with pytest.raises(SourceError, match="taken in from topic first, now it is other"):
        other.take()


def test_a_key_that_is_no_column(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    kafka.create("nokey", 1)
    with pytest.raises(SourceError, match="there is no column nope; there are id, v, n"):
        Reader(spark, tmp_path, spec_of(kafka.servers, "nokey", envelope="upsert", key="nope")).take()


def test_no_columns_and_no_messages(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    kafka.create("nothing", 1)
    with pytest.raises(SourceError, match="no messages in topic nothing yet, and no columns"):
        Reader(spark, tmp_path, spec_of(kafka.servers, "nothing", {}, envelope="append")).take()


def test_nobody_answers(spark: SparkSession, tmp_path: Path) -> None:
    began = time.monotonic()
    spec = spec_of("127.0.0.1:9", "t", envelope="append")
    reader = Reader(spark, tmp_path, spec)
    with pytest.raises(SourceError, match="topic t cannot be read from") as caught:
        reader.take()
    assert time.monotonic() - began < 10 and "bootstrap.servers" in caught.value.remedy
    assert change_token(reader.storage, spec) == ((), None)
    spec = spec_of("127.0.0.1:9", "t", envelope="append", options={"no.such.option": "1"})
    with pytest.raises(SourceError, match=r"refuses the options.*no.such.option"):
        Reader(spark, tmp_path, spec).take()


def test_what_a_topic_looks_like(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """Another thing when something was committed, and only then; a look takes little."""
    kafka.create("looks", 3)
    spec = spec_of(kafka.servers, "looks", envelope="append")
    storage = Reader(spark, tmp_path, spec).storage
    looks = [change_token(storage, spec), change_token(storage, spec)]
    Writer(kafka, "looks").send(*rows(1))
    looks += [change_token(storage, spec)]
    writer = Writer(kafka, "looks", "looks")
    writer.producer.begin_transaction()
    writer.send(*rows(2))
    looks += [change_token(storage, spec)]
    writer.end()
    looks += [change_token(storage, spec)]
    assert [one == other for one, other in itertools.pairwise(looks)] == [True, False, True, False]
    assert poll_interval(spec) == 0.2


def test_without_the_client(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("confluent_kafka"):
            raise ImportError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ConfigError, match=r"confluent-kafka.*\n.*pip install 'dbt-incremental-dd\[kafka\]'"):
        Reader(spark, tmp_path, spec_of("127.0.0.1:9", "t", envelope="append")).take()
