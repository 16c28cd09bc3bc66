"""How a source is read: the settings under ``config: meta: differential:`` of a dbt source table."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import is_reserved
from dbt_incremental_dd.core.time import parse_duration
from dbt_incremental_dd.sources.secrets import resolved
from dbt_incremental_dd.trace.manifest import DEFAULT_RETAIN

Envelope = Literal["append", "upsert", "debezium", "changelog", "snapshot", "replica"]
FORMATS = ("parquet", "json", "csv", "delta", "avro")
_SUFFIXES = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}
CONNECTORS = ("files", "delta", "iceberg", "table", "kafka", "postgres")
_ENVELOPES = {"postgres": "replica"}
"""Of connectors of which the envelope follows."""
_KEYS = (
    "connector",
    "envelope",
    "key",
    "order_by",
    "deleted_when",
    "path",
    "topic",
    "table",
    "format",
    "options",
    "frontier",
    "event_time",
    "malformed",
    "retain_history",
    "diff_column",
    "op_column",
)


@dataclass(frozen=True)
class SourceSpec:
    """One source. ``name`` is its collection (``schema.identifier``, lower case), ``relation`` its SQL identifier.

    ``connector``: the way in which it is reached. ``path`` (absolute, or a URI) with ``format`` and ``options`` reads
    files, ``topic`` with them a broker's messages, ``table`` one of a database; without, ``relation`` is read from the
    catalog. ``columns`` are (name, Spark DDL type) pairs where they are declared. With ``frontier`` managed the source
    is taken in up to the time that somebody has declared complete. Records wait for their ``event_time``.
    ``retain_history`` in ms. ``secrets``: texts, such as values of ``options``, that no message may show.
    """

    name: str
    relation: str
    envelope: Envelope = "snapshot"
    connector: str = "table"
    key: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    deleted_when: str | None = None
    path: str | None = None
    topic: str | None = None
    table: str | None = None
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    columns: tuple[tuple[str, str], ...] = ()
    frontier: Literal["auto", "managed"] = "auto"
    event_time: str | None = None
    malformed: Literal["error", "set_aside"] = "error"
    retain_history: int = DEFAULT_RETAIN
    diff_column: str | None = None
    op_column: str | None = None

    @property
    def ddl(self) -> str | None:
        """The declared columns as a DDL schema."""
        if not self.columns:
            return None
        return ", ".join(f"`{name.replace('`', '``')}` {dtype}" for name, dtype in self.columns)


def parse_source(
    name: str,
    relation: str,
    meta: Mapping[str, Any],
    columns: Mapping[str, str | None],
    project_dir: str,
) -> SourceSpec:
    """The spec of a source from its settings. Raises ConfigError, naming the source and the key, for what is wrong.

    ``columns`` are those that the source declares, with their types where it does; a relative path is taken from
    ``project_dir``.
    """
    given = dict(meta)
    for column in columns:
        if is_reserved(column) and column not in (given.get("diff_column"), given.get("op_column")):
            raise ConfigError(
                f"source {name}: column {column} has a reserved name: those that begin with dd_ are",
                "Rename the column, or read a view in which it has another name.",
            )
    for key in given:
        if key not in _KEYS:
            close = difflib.get_close_matches(key, _KEYS, 1)
            hint = f"Did you mean {close[0]}? " if close else ""
            raise ConfigError(f"source {name}: unknown setting differential.{key}", f"{hint}Known: {', '.join(_KEYS)}.")
    path = given.get("path")
    form = _format(name, path, given.get("format"))
    implied = "table" if path is None else "delta" if form == "delta" else "files"
    connector = _choice(name, "connector", given.get("connector", implied), CONNECTORS)
    untyped = [column for column, dtype in columns.items() if not dtype]
    if connector == "files" and untyped and len(untyped) < len(columns):
        raise ConfigError(
            f"source {name}: column {untyped[0]} has no data_type, while others have one",
            "Give all columns a data_type. Where none has one, the types are those found in the files.",
        )
    envelope = given.get("envelope", _ENVELOPES.get(connector, "snapshot"))
    options, secrets = resolved(name, _options(name, given.get("options")))
    spec = SourceSpec(
        name=name,
        relation=relation,
        connector=connector,
        envelope=_choice(name, "envelope", envelope, get_args(Envelope)),
        key=_names(given.get("key")),
        order_by=_names(given.get("order_by")),
        deleted_when=given.get("deleted_when"),
        path=None if path is None else _absolute(str(path), project_dir),
        topic=None if given.get("topic") is None else str(given["topic"]),
        table=None if given.get("table") is None else str(given["table"]),
        format=form,
        options=options,
        secrets=secrets,
        columns=tuple((column, str(dtype)) for column, dtype in columns.items() if dtype),
        frontier=_choice(name, "frontier", given.get("frontier", "auto"), ("auto", "managed")),
        event_time=None if given.get("event_time") is None else str(given["event_time"]),
        retain_history=_duration(name, given.get("retain_history")),
        malformed=_choice(name, "malformed", given.get("malformed", "error"), ("error", "set_aside")),
        diff_column=given.get("diff_column"),
        op_column=given.get("op_column"),
    )
    _check(spec)
    return spec


def _check(spec: SourceSpec) -> None:
    implied = _ENVELOPES.get(spec.connector)
    if (implied or spec.envelope) != spec.envelope or (implied is None and spec.envelope in _ENVELOPES.values()):
        raise ConfigError(
            f"source {spec.name}: envelope {spec.envelope} is not for connector {spec.connector}",
            "Leave envelope out: it follows from the connector." if implied else "Choose another envelope.",
        )
    if spec.envelope in ("upsert", "debezium") and not spec.key:
        raise ConfigError(
            f"source {spec.name}: envelope {spec.envelope} needs differential.key",
            "Name the columns that identify a row: key: [id].",
        )
    if spec.envelope == "changelog" and not (spec.diff_column or spec.op_column):
        raise ConfigError(
            f"source {spec.name}: envelope changelog needs differential.diff_column or differential.op_column",
            "Name the column that says what happened to the row.",
        )
    if spec.envelope == "debezium" and spec.path and spec.format != "json":
        raise ConfigError(f"source {spec.name}: envelope debezium reads JSON, not {spec.format}", "Set format: json.")
    if spec.format == "avro" and spec.connector != "kafka":
        raise ConfigError(f"source {spec.name}: format avro is for connector kafka", "Set another format.")
    if spec.topic is not None and spec.connector != "kafka":
        raise ConfigError(f"source {spec.name}: topic is for connector kafka", "Set connector: kafka, or leave it out.")
    if spec.connector == "kafka":
        return
    if spec.event_time is not None and (spec.path is None or spec.format == "delta" or spec.envelope == "snapshot"):
        raise ConfigError(
            f"source {spec.name}: event_time is for files of events",
            "Set a path, and an envelope other than snapshot; or leave event_time out.",
        )


def _duration(name: str, text: Any) -> int:
    try:
        return DEFAULT_RETAIN if text is None else parse_duration(text)
    except ConfigError as error:
        raise ConfigError(f"source {name}: differential.retain_history: {error.message}", error.remedy) from None


def _choice(name: str, key: str, value: Any, allowed: tuple[str, ...]) -> Any:
    if value not in allowed:
        close = difflib.get_close_matches(str(value), allowed, 1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise ConfigError(f"source {name}: differential.{key} is {value!r}", f"{hint}It may be {', '.join(allowed)}.")
    return value


def _options(name: str, value: Any) -> Mapping[str, Any]:
    if value is None or isinstance(value, Mapping):
        return value or {}
    raise ConfigError(f"source {name}: differential.options is no mapping", "Write options: {name: value}.")


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(str(item) for item in value)


def _format(name: str, path: Any, given: Any) -> str | None:
    if given is not None:
        return str(_choice(name, "format", given, FORMATS))
    if path is None:
        return None
    found = _SUFFIXES.get(os.path.splitext(str(path))[1].lower())
    if found is None:
        raise ConfigError(f"source {name}: differential.path needs a format", f"Set format to {', '.join(FORMATS)}.")
    return found


def _absolute(path: str, project_dir: str) -> str:
    return path if "://" in path or os.path.isabs(path) else os.path.normpath(os.path.join(project_dir, path))
