"""A source as its settings describe it. What only one connector knows is in a subclass of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.manifest import DEFAULT_RETAIN
from dbt_incremental_dd.sources.envelopes.envelope import Envelope
from dbt_incremental_dd.sources.envelopes.settings import EnvelopeSettings
from dbt_incremental_dd.sources.secrets import resolved
from dbt_incremental_dd.sources.setting import Read, Written, choice, duration, setting, setting_names

FILE_FORMATS = ("parquet", "json", "csv", "delta")


def one_of(*formats: str) -> Read:
    """One of the formats; NULL is none."""
    return lambda written: None if written.value is None else choice(*formats)(written)


def read_options(written: Written) -> Mapping[str, str]:
    """The options' values, those that are named in the environment among them."""
    return resolved(f"source {written.source}", _mapping(written))[0]


def secrets_of(written: Written) -> frozenset[str]:
    """Which of the options' values no message may show."""
    return resolved(f"source {written.source}", _mapping(written))[1]


def _mapping(written: Written) -> Mapping[str, Any]:
    if written.value is None or isinstance(written.value, Mapping):
        return written.value or {}
    raise ConfigError(f"source {written.source}: differential.options is no mapping", "Write options: {name: value}.")


@dataclass(frozen=True, kw_only=True)
class SourceSpec:
    """One source. ``name`` is its collection (``schema.identifier``, lower case), ``relation`` its SQL identifier.

    ``columns`` are (name, Spark DDL type) pairs of those that are declared with a type, ``untyped`` the others.
    ``secrets``: texts, such as values of ``options``, that no message may show. With ``frontier`` managed the source is
    taken in up to the time that somebody has declared complete. ``retain_history`` in ms.

    A field that is no setting here is for what only some connectors know, which make a setting of it: records wait for
    their ``event_time``, and leave ``keep`` (ms) after it.
    """

    connector: ClassVar[str]
    reads: ClassVar[str]
    """What the connector reads, for messages."""
    in_catalog: ClassVar[bool] = False
    """Whether the source is a relation of the catalog by itself."""
    implied_envelope: ClassVar[Envelope | None] = None
    """The one that follows from the connector, if any does."""
    envelope_settings: ClassVar[tuple[str, ...]] = setting_names(EnvelopeSettings)
    """Those that mean something to the connector."""
    record_settings: ClassVar[tuple[str, ...]] = ()
    """The other fields that say how its records are read: with others they would be others."""
    is_replayed: ClassVar[bool] = False
    """Whether the connector can read again all that was taken in, so that other settings can apply to it."""

    name: str
    relation: str
    envelope: Envelope
    settings: EnvelopeSettings = field(default_factory=EnvelopeSettings)
    columns: tuple[tuple[str, str], ...] = ()
    untyped: tuple[str, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    format: str | None = None
    event_time: str | None = None
    keep: int | None = None
    options: Mapping[str, str] = field(default_factory=dict, metadata={"read": read_options}, repr=False)
    frontier: Literal["auto", "managed"] = setting(choice("auto", "managed"), "auto")
    malformed: Literal["error", "set_aside"] = setting(choice("error", "set_aside"), "error")
    retain_history: int = setting(duration(DEFAULT_RETAIN), DEFAULT_RETAIN)

    @property
    def ddl(self) -> str | None:
        """The declared columns as a DDL schema."""
        if not self.columns:
            return None
        return ", ".join(f"`{name.replace('`', '``')}` {dtype}" for name, dtype in self.columns)

    @property
    def reads_local_times(self) -> bool:
        """Whether records may have times without a zone, which are read in the session's, and can be read again."""
        return False

    @property
    def location(self) -> str | None:
        """Where the records are, for messages that have no better name of it."""
        return None

    @property
    def uri(self) -> str | None:
        """Where the records are, without secrets; a path on this machine has no scheme. None if a catalog knows."""
        return self.location

    def check(self) -> None:
        """Raises ConfigError for settings that the connector cannot honour."""

    @classmethod
    def completed(cls, source: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The settings with those that follow from others. Raises ConfigError if one does not."""
        return given

    @classmethod
    def known_settings(cls) -> tuple[str, ...]:
        """What may be set, but for the connector's own name."""
        return ("envelope", *cls.envelope_settings, *setting_names(cls))
