"""A collection's changes in a Kafka topic, one transaction for each time, exactly once.

The transaction also writes the time to a compacted topic, from which a restarted publisher resumes. A second publisher
of the same collection and topic fences the first one.
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import ConfigError, SinkError, SourceError
from dbt_incremental_dd.core.failpoints import reached
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.sinks.events import FORMS, Form, KeyedMessage, messages
from dbt_incremental_dd.sinks.following import follow, require_key, resumed
from dbt_incremental_dd.sinks.wanted import Wanted
from dbt_incremental_dd.sources.connectors.kafka.client import Span, client, extent
from dbt_incremental_dd.sources.connectors.kafka.client import messages as read
from dbt_incremental_dd.sources.connectors.kafka.feed import Feed
from dbt_incremental_dd.subscribe.subscription import Batch, Subscription

PROGRESS = "dbt-dd-progress"
"""The topic in which publishers record their progress."""
_CONNECT_SECONDS = 5.0
"""Time limit for the first response of a broker."""
_REQUEST_SECONDS = 30.0
"""Time limit for a transaction's steps, which bridges a broker's restart."""
_TRANSACTION_MS = 600_000
"""Time limit of one transaction, in ms."""


@dataclass(frozen=True)
class Sink:
    """``key``: columns each of whose values has one row. ``options``: the Kafka client's, with ``bootstrap.servers``.
    ``form``: of the messages."""

    topic: str
    key: tuple[str, ...]
    options: Mapping[str, str] = field(repr=False)
    form: Form = "upsert"
    progress: str = PROGRESS


def sink_of(wanted: Wanted) -> Sink:
    """Raises ConfigError for settings that mean nothing to it."""
    wanted.require_only("topic", "key", "options", "form")
    form = wanted.form or "upsert"
    if form not in FORMS:
        raise ConfigError(
            f"messages to topic {wanted.target} are of the form {form!r}", f"It may be {', '.join(FORMS)}."
        )
    return Sink(wanted.target, wanted.key, wanted.options, "debezium" if form == "debezium" else "upsert")


def publish(collection: Collection, sink: Sink, *, once: bool = False, ended: Event | None = None) -> None:
    """Publishes all changes since the last published time, or the contents at first; then continues with new ones,
    until ``ended``, unless ``once``.

    Raises ConfigError for invalid settings, SinkError if Kafka fails: nothing is lost, and calling it again duplicates
    nothing.
    """
    _check(collection, sink)
    kafka = client(collection.name)
    try:
        publisher = _Publisher(collection, sink, kafka)
        follow(publisher.subscription(), publisher.write, once=once, ended=ended)
    except (kafka.KafkaException, SourceError) as error:
        reason = error.message if isinstance(error, SourceError) else error.args[0].str()
        raise SinkError(
            f"{collection.name} cannot be published to topic {sink.topic}: {reason}",
            "Check `bootstrap.servers`, that the topic exists, and what this user may write. Start it again: it goes "
            "on where it was.",
        ) from error


def _check(collection: Collection, sink: Sink) -> None:
    if not sink.options.get("bootstrap.servers"):
        raise ConfigError(f"{collection.name}: publishing needs bootstrap.servers", "Say where the brokers are.")
    if sink.form not in FORMS:
        raise ConfigError(f"{collection.name}: the form is {sink.form!r}", f"It may be {', '.join(FORMS)}.")
    require_key(collection, sink.key)


class _Publisher:
    def __init__(self, collection: Collection, sink: Sink, kafka: Any) -> None:
        self._collection = collection
        self._sink = sink
        self._feed = Feed(
            collection.name,
            sink.progress,
            "json",
            key=(),
            key_format="json",
            from_latest=False,
            client=sink.options,
            java=None,
            reader={},
            registry={},
        )
        self._id = f"dbt-dd {collection.name} {sink.topic}"
        self._cluster = self._prepare(kafka)
        settings = {"log_level": 0, "transaction.timeout.ms": _TRANSACTION_MS, **sink.options}
        self._producer = kafka.Producer({**settings, "transactional.id": self._id})
        # Aborts a transaction that a former publisher left open, so that what is read next is all that was committed.
        self._producer.init_transactions(_REQUEST_SECONDS)

    def _prepare(self, kafka: Any) -> str:
        """Returns the cluster's id. Creates the progress topic if it is missing; raises SinkError if the target topic
        is."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"log_level": 0, **self._sink.options})
        found = admin.list_topics(timeout=_CONNECT_SECONDS)
        if self._sink.topic not in found.topics:
            raise SinkError(
                f"there is no topic {self._sink.topic} to publish {self._collection.name} to",
                "Create it, with as many partitions and as long a retention as its readers need.",
            )
        if self._sink.progress not in found.topics:
            made = NewTopic(self._sink.progress, 1, config={"cleanup.policy": "compact"})
            try:
                admin.create_topics([made])[self._sink.progress].result(_REQUEST_SECONDS)
            except kafka.KafkaException as error:
                if error.args[0].code() != kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            self._await_progress_topic(admin)
        return str(found.cluster_id)

    def _await_progress_topic(self, admin: Any) -> None:
        """Brokers learn of a topic after its creation has been confirmed. Raises SinkError if they do not."""
        until = clock.monotonic() + _REQUEST_SECONDS
        while self._sink.progress not in admin.list_topics(timeout=_CONNECT_SECONDS).topics:
            if clock.monotonic() > until:
                raise SinkError(
                    f"topic {self._sink.progress} was created, and the broker does not list it", "Start it again."
                )
            clock.sleep(0.05)

    def subscription(self) -> Subscription:
        """A subscription from the last published time, or from the beginning."""
        return resumed(self._collection, f"kafka {self._cluster} {self._sink.topic}", self._last_published())

    def _last_published(self) -> Time | None:
        """The time of the last committed transaction; None if there is none."""
        found = extent(self._feed)
        spans = [Span(partition, found.first[partition], end) for partition, end in found.end.items()]
        latest = None
        for table in read(self._feed, spans):
            for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
                if key == self._id.encode() and value is not None:
                    latest = int(json.loads(value)["time"])
        return latest

    def write(self, batch: Batch) -> None:
        """Publishes the batch's times, one transaction each."""
        for one in batch.times():
            if one.updates.num_rows or batch.after is None:
                sink, is_first = self._sink, batch.after is None
                self._commit(
                    messages(self._collection.name, one.updates, one.timestamp, sink.key, sink.form, is_first=is_first),
                    one.timestamp,
                )

    def _commit(self, found: Iterable[KeyedMessage], t: Time) -> None:
        """Publishes the messages and the time in one transaction."""
        self._producer.begin_transaction()
        for message in found:
            self._send(self._sink.topic, message)
        self._send(self._sink.progress, KeyedMessage(self._id.encode(), json.dumps({"time": t}).encode()))
        self._producer.flush(_REQUEST_SECONDS)
        reached("publish: sent")
        self._producer.commit_transaction(_REQUEST_SECONDS)
        reached("publish: committed")

    def _send(self, topic: str, message: KeyedMessage) -> None:
        while True:
            try:
                self._producer.produce(topic, message.value, message.key)
                return
            except BufferError:
                self._producer.poll(0.1)
