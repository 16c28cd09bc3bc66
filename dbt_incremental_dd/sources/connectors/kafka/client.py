"""A Kafka topic as its client sees it: where its partitions begin and end, and the messages between two offsets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.errors import ConfigError, SourceError
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BINARY, INTEGER, LONG
from dbt_incremental_dd.sources.connectors.kafka.feed import Feed

MESSAGES = Schema(
    (Column("partition", INTEGER), Column("offset", LONG), Column("key", BINARY), Column("value", BINARY))
)
"""Messages as they are, before anything is decoded."""
_ARROW = pa.schema([("partition", pa.int32()), ("offset", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])
_ANSWER = 5.0
"""Seconds that a broker has for an answer."""
_A_MOMENT = 0.1
_PATIENCE = 30.0
"""Seconds without any message after which reading is given up: a broker may be starting again."""
_AT_A_TIME = 50_000
"""Messages that are held as a table; fewer where they are large."""
_BYTES_AT_A_TIME = 32 << 20
_TURN = 0.05
"""Seconds for which messages are waited for at a time."""
_QUIET = {"log_level": 0}
_READING = {
    "group.id": "dbt-incremental-dd",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 50,
    "queued.max.messages.kbytes": 16384,
}


@dataclass(frozen=True)
class Span:
    """Offsets of one partition: from ``start`` up to before ``end``."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class Extent:
    """A topic as it is: its identity, and by partition the first offset that is there and the one after the last that
    is settled: no open transaction lies before it."""

    id: str
    first: Mapping[int, int]
    end: Mapping[int, int]


def extent(feed: Feed, answer: float = _ANSWER) -> Extent:
    """How far the topic reaches. Raises SourceError where there is none, or no broker answers in that many seconds."""
    kafka = client(feed.source)
    passing = {kafka.KafkaError.NOT_LEADER_FOR_PARTITION, kafka.KafkaError.LEADER_NOT_AVAILABLE}
    deadline = time.monotonic() + answer
    try:
        connected = _connected(kafka, feed.client)
    except kafka.KafkaException as error:
        raise _failure(feed, error.args[0]) from error
    connected.said()
    while True:
        try:
            return _extent(feed, connected.admin, max(deadline - time.monotonic(), 0.1))
        except kafka.KafkaException as error:
            # Where a partition's leader is changes with its brokers, and is known a moment later.
            if error.args[0].code() not in passing or time.monotonic() > deadline:
                raise _failure(feed, connected.said() or error.args[0]) from error
            time.sleep(_A_MOMENT)


def _extent(feed: Feed, admin: Any, answer: float) -> Extent:
    from confluent_kafka import IsolationLevel, TopicCollection, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    found = admin.describe_topics(TopicCollection([feed.topic]), request_timeout=answer)[feed.topic].result()
    partitions = [TopicPartition(feed.topic, one.id) for one in found.partitions]

    def offsets(which: Any) -> dict[int, int]:
        wanted, level = dict.fromkeys(partitions, which), IsolationLevel.READ_COMMITTED
        asked = admin.list_offsets(wanted, isolation_level=level, request_timeout=answer)
        return {partition.partition: int(one.result().offset) for partition, one in asked.items()}

    return Extent(str(found.topic_id), offsets(OffsetSpec.earliest()), offsets(OffsetSpec.latest()))


def messages(feed: Feed, spans: Sequence[Span]) -> Generator[pa.Table, None, None]:
    """All committed messages of the spans, in tables of a bounded size. Raises SourceError where they do not come."""
    kafka = client(feed.source)
    try:
        consumer = kafka.Consumer({**_QUIET, **feed.client, **_READING})
    except (kafka.KafkaException, ValueError, TypeError) as error:
        raise _unusable(feed, error) from error
    try:
        yield from _Reading(feed, kafka, consumer, spans).tables()
    except kafka.KafkaException as error:
        raise _failure(feed, error.args[0]) from error
    finally:
        consumer.close()


class _Reading:
    """``left``: the ends of the partitions that have not been read up to there."""

    def __init__(self, feed: Feed, kafka: Any, consumer: Any, spans: Sequence[Span]) -> None:
        self._feed = feed
        self._kafka = kafka
        self._consumer = consumer
        self._left = {span.partition: span.end for span in spans if span.start < span.end}
        self._starts = {span.partition: span.start for span in spans}
        self._most = sum(span.end - span.start for span in spans)
        self._rows: list[tuple[int, int, bytes | None, bytes | None]] = []
        self._bytes = 0
        self._why: Any = None

    def tables(self) -> Iterator[pa.Table]:
        where = [self._kafka.TopicPartition(self._feed.topic, p, self._starts[p]) for p in self._left]
        self._consumer.assign(where)
        heard = time.monotonic()
        while self._left:
            # It waits for as many as it is asked for; there may be fewer, where transactions have their markers.
            got = self._consumer.consume(min(self._most, _AT_A_TIME // 5), _TURN)
            were_wanted = [self._take(message) for message in got]
            if any(were_wanted):
                heard = time.monotonic()
            if len(self._rows) >= _AT_A_TIME or self._bytes >= _BYTES_AT_A_TIME:
                yield self._table()
            if time.monotonic() - heard > _PATIENCE:
                raise _failure(self._feed, self._why)
        if self._rows:
            yield self._table()

    def _take(self, message: Any) -> bool:
        """Whether it is one that was waited for."""
        partition, error = message.partition(), message.error()
        if error is not None:
            return self._take_error(error, partition, message.offset())
        end = self._left.get(partition)
        if end is None:
            return False
        offset = message.offset()
        if offset < end:
            key, value = message.key(), message.value()
            self._rows.append((partition, offset, key, value))
            self._most = max(self._most - 1, 1)
            self._bytes += len(key or b"") + len(value or b"")
        if offset >= end - 1:
            self._finish(partition)
        return True

    def _take_error(self, error: Any, partition: int, offset: int) -> bool:
        code = error.code()
        if code == self._kafka.KafkaError._PARTITION_EOF:
            # What lies between the last message and the end belongs to transactions: markers, or what was aborted.
            if offset >= self._left.get(partition, offset + 1):
                self._finish(partition)
            return True
        if code in (self._kafka.KafkaError._AUTO_OFFSET_RESET, self._kafka.KafkaError.OFFSET_OUT_OF_RANGE):
            raise lost(self._feed, partition, self._starts[partition], None)
        self._why = error
        return False

    def _finish(self, partition: int) -> None:
        del self._left[partition]
        self._consumer.pause([self._kafka.TopicPartition(self._feed.topic, partition)])

    def _table(self) -> pa.Table:
        columns = list(zip(*self._rows, strict=True))
        self._rows, self._bytes = [], 0
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, _ARROW, strict=True)], _ARROW)


def no_messages() -> pa.Table:
    """A table of none."""
    return _ARROW.empty_table()


def lost(feed: Feed, partition: int, wanted: int, first: int | None) -> SourceError:
    """That messages which have not been taken in are gone."""
    told = "" if first is None else f", which begins at {first} now"
    return SourceError(
        f"source {feed.source}: messages of topic {feed.topic} from offset {wanted} of partition {partition} on are "
        f"gone{told}: its retention was shorter than the time between two runs",
        "Take it in anew: remove its folder under state_root, run the models on it with --full-refresh, and let the "
        "topic retain more.",
    )


def client(source: str) -> Any:
    """The client's module. Raises ConfigError, naming the source, where it is not installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise ConfigError(
            f"source {source}: connector kafka needs confluent-kafka, which is not installed",
            "pip install 'dbt-incremental-dd[kafka]'",
        ) from error
    return confluent_kafka


class _Connected:
    """A client for questions. Why there is no connection it says beside them: a question's own error is that it took
    too long."""

    def __init__(self, kafka: Any, options: Mapping[str, str]) -> None:
        from confluent_kafka.admin import AdminClient

        self._down = kafka.KafkaError._ALL_BROKERS_DOWN
        self._said: Any = None
        self.admin = AdminClient({**_QUIET, **options, "error_cb": self._note})

    def _note(self, error: Any) -> None:
        if error.code() != self._down:
            self._said = error

    def said(self) -> Any:
        """The last error since this was asked before; None where there was none."""
        self.admin.poll(0)
        said, self._said = self._said, None
        return said


_CONNECTED: dict[frozenset[tuple[str, str]], _Connected] = {}
_LOCK = threading.Lock()


def _connected(kafka: Any, options: Mapping[str, str]) -> _Connected:
    """One that is connected already where there has been one."""
    key = frozenset(options.items())
    with _LOCK:
        if key not in _CONNECTED:
            _CONNECTED[key] = _Connected(kafka, options)
        return _CONNECTED[key]


def _failure(feed: Feed, error: Any) -> SourceError:
    """What the client says, and what to do."""
    kafka = client(feed.source)
    reasons: Mapping[int, Callable[[], SourceError]] = {
        kafka.KafkaError.UNKNOWN_TOPIC_OR_PART: lambda: SourceError(
            f"source {feed.source}: there is no topic {feed.topic} at {feed.servers}",
            "Create it, or correct `topic` in the source's settings.",
        ),
        kafka.KafkaError._INVALID_ARG: lambda: _unusable(feed, error),
    }
    if error is not None and error.code() in reasons:
        return reasons[error.code()]()
    told = "no answer" if error is None else error.str()
    return SourceError(
        f"source {feed.source}: topic {feed.topic} cannot be read from {feed.servers}: {told}",
        "Check `bootstrap.servers` and the options for security, and that the broker runs. Nothing is lost.",
    )


def _unusable(feed: Feed, error: object) -> SourceError:
    return SourceError(
        f"source {feed.source}: Kafka's client refuses the options: {error}", "Correct `options` in its settings."
    )
