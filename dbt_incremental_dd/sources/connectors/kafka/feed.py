"""What a source's settings say of its topic: where it is, and how its messages are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sources.envelopes.envelope import Envelope
from dbt_incremental_dd.sources.setting import duration_if_any, setting, text
from dbt_incremental_dd.sources.spec import FILE_FORMATS, SourceSpec, one_of

_SERVERS = "bootstrap.servers"
_REGISTRY = "schema.registry."
_KEY_FORMAT = "key.format"
_START = "auto.offset.reset"
_JAVA = "kafka."
_FORMATS = ("json", "avro", "csv")
KEY_FORMATS = ("string", "json", "avro")


@dataclass(frozen=True, kw_only=True)
class KafkaSpec(SourceSpec):
    """``topic``: by default the source's identifier; ``format``: what messages' values are."""

    connector: ClassVar[str] = "kafka"
    reads: ClassVar[str] = "a topic in its own order"
    record_settings: ClassVar[tuple[str, ...]] = ("columns", "format")
    envelope_settings: ClassVar[tuple[str, ...]] = ("key", "deleted_when", "diff_column", "op_column")

    topic: str | None = setting(text)
    format: str | None = setting(one_of(*FILE_FORMATS, "avro"))
    event_time: str | None = setting(text)
    keep: int | None = setting(duration_if_any)

    @property
    def uri(self) -> str:
        """By the first of the brokers."""
        broker = feed_of(self).servers.split(",")[0].strip().rpartition("://")[2]
        return f"kafka://{broker}/{feed_of(self).topic}"

    def check(self) -> None:
        """Raises ConfigError for what does not go with a topic."""
        envelope = self.envelope
        if envelope.is_whole:
            raise ConfigError(
                f"source {self.name}: a topic holds changes, and envelope {envelope} is for all that there is",
                "Set envelope to append, upsert, debezium or changelog.",
            )
        if self.format is not None and self.format not in _readable(envelope):
            raise ConfigError(
                f"source {self.name}: connector kafka cannot read {self.format} with envelope {envelope}",
                f"Set format to {' or '.join(_readable(envelope))}.",
            )
        if self.event_time is not None and envelope.is_keyed_by_feed:
            raise ConfigError(
                f"source {self.name}: messages that wait for their event_time would lose the topic's order",
                f"Leave event_time out, or use another envelope than {envelope}.",
            )
        if self.format == "csv" and not self.columns:
            raise ConfigError(
                f"source {self.name}: messages of CSV do not say what their columns are",
                "Declare the source's columns with their data_type.",
            )
        feed_of(self)


def _readable(envelope: Envelope) -> tuple[str, ...]:
    """The formats of messages in an envelope."""
    return tuple(form for form in _FORMATS if not envelope.formats or form in envelope.formats)


@dataclass(frozen=True)
class Feed:
    """A topic and the form of its messages.

    ``client``: options of the Python client; ``java``: of Spark's own connector, None where what it would need is not
    known; ``reader``: of Spark's JSON or CSV; ``registry``: of the schema registry. ``key``: the columns that the
    message's key holds, none where keys say nothing.
    """

    source: str
    topic: str
    format: str
    key: tuple[str, ...]
    key_format: str
    from_latest: bool
    client: Mapping[str, str] = field(repr=False)
    java: Mapping[str, str] | None = field(repr=False)
    reader: Mapping[str, str]
    registry: Mapping[str, str] = field(repr=False)

    @property
    def reads_avro(self) -> bool:
        """Whether its messages are Avro."""
        return self.format == "avro"

    @property
    def servers(self) -> str:
        """Where the brokers are."""
        return self.client[_SERVERS]


def feed_of(spec: KafkaSpec) -> Feed:
    """The source's feed. Raises ConfigError for what cannot be honoured."""
    given = dict(spec.options)
    if not given.get(_SERVERS):
        raise ConfigError(
            f"source {spec.name}: connector kafka needs the option {_SERVERS}",
            f"Set options: {{{_SERVERS}: host:9092}}.",
        )
    key_format = given.pop(_KEY_FORMAT, None) or _usual_key_format(spec)
    start = given.pop(_START, "earliest")
    registry = {name.removeprefix(_REGISTRY): given.pop(name) for name in list(given) if name.startswith(_REGISTRY)}
    java = {name: given.pop(name) for name in list(given) if name.startswith(_JAVA)}
    client = {name: value for name, value in given.items() if "." in name}
    reader = {name: value for name, value in given.items() if "." not in name}
    form = spec.format or "json"
    _check_key(spec, key_format)
    if start not in ("earliest", "latest"):
        raise ConfigError(f"source {spec.name}: {_START} is {start!r}", "It may be earliest or latest.")
    if form == "avro" and not registry.get("url"):
        raise ConfigError(
            f"source {spec.name}: Avro needs the option {_REGISTRY}url", "Give the schema registry's address."
        )
    return Feed(
        source=spec.name,
        topic=spec.topic or _identifier(spec.relation),
        format=form,
        key=spec.settings.key if spec.envelope.is_keyed_by_feed else (),
        key_format=key_format,
        from_latest=start == "latest",
        client=client,
        java={f"{_JAVA}{_SERVERS}": client[_SERVERS], **java} if java or client.keys() == {_SERVERS} else None,
        reader=reader,
        registry=registry,
    )


def _usual_key_format(spec: KafkaSpec) -> str:
    if spec.format == "avro":
        return "avro"
    return "string" if len(spec.settings.key) == 1 else "json"


def _check_key(spec: KafkaSpec, key_format: str) -> None:
    if key_format not in KEY_FORMATS:
        raise ConfigError(
            f"source {spec.name}: option {_KEY_FORMAT} is {key_format!r}", f"It may be {', '.join(KEY_FORMATS)}."
        )
    if key_format == "avro" and spec.format != "avro":
        raise ConfigError(f"source {spec.name}: {_KEY_FORMAT}: avro goes with format: avro", "Set the format, too.")
    if spec.envelope.is_keyed_by_feed and key_format == "string" and len(spec.settings.key) > 1:
        names = ", ".join(spec.settings.key)
        raise ConfigError(
            f"source {spec.name}: a message's key that is a plain string cannot be the columns {names}",
            f"Set {_KEY_FORMAT}: json or avro, or name one column.",
        )


def _identifier(relation: str) -> str:
    """The last part of a relation's name, which may be quoted."""
    if relation.endswith("`"):
        return relation[relation.rfind("`", 0, -1) + 1 : -1]
    return relation.rsplit(".", 1)[-1]
