"""The changes of one time as messages: each key's new row, or a Debezium event with the old and the new row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.core.time import Time, format_time
from dbt_incremental_dd.subscribe.json_values import json_rows

Form = Literal["upsert", "debezium"]
FORMS: tuple[Form, ...] = ("upsert", "debezium")
Row = dict[str, Any]


@dataclass(frozen=True)
class KeyedMessage:
    """A key and its new value; None deletes it."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True)
class KeyChange:
    """A key's row before and after."""

    key: Row
    before: Row | None
    after: Row | None


def messages(
    name: str, updates: pa.Table, t: Time, key: Sequence[str], form: Form, *, is_first: bool
) -> list[KeyedMessage]:
    """The updates of one time as messages, in order for each key. ``is_first``: they are the whole contents.

    Raises ConfigError if a key has several rows, or is NULL.
    """
    found = changes(name, json_rows(updates.drop_columns([TIME])), t, key)
    if form == "upsert":
        return [KeyedMessage(_json(one.key), None if one.after is None else _json(one.after)) for one in found]
    return [message for one in found for message in _events(name, one, t, is_first=is_first)]


def changes(name: str, updates: Iterable[Row], t: Time, key: Sequence[str]) -> Iterator[KeyChange]:
    """Each key's change, from the updates of one time, as rows with their diffs. Raises ConfigError as ``messages``
    does."""
    known: dict[str, tuple[Row, list[Row], list[Row]]] = {}
    for row in updates:
        diff = row.pop(DIFF)
        values = {column: row[column] for column in key}
        if None in values.values():
            raise ConfigError(f"{name}: column {_null(values)} of the key is NULL in a row", "Choose another key.")
        _, *sides = known.setdefault(repr(values), (values, [], []))
        sides[diff > 0].extend([row] * abs(diff))
    for values, gone, come in known.values():
        if len(gone) > 1 or len(come) > 1:
            shown = ", ".join(f"{column} = {value}" for column, value in values.items())
            raise ConfigError(
                f"{name}: key {shown} has several rows at {format_time(t)}",
                "Name columns of which each value has one row.",
            )
        yield KeyChange(values, gone[0] if gone else None, come[0] if come else None)


def _events(name: str, change: KeyChange, t: Time, *, is_first: bool) -> Iterator[KeyedMessage]:
    """Debezium events. A delete is followed by a tombstone, so that a compacted topic drops the key."""
    op = "d" if change.after is None else "u" if change.before is not None else "r" if is_first else "c"
    source = {"connector": "dbt-incremental-dd", "name": name, "ts_ms": t, "lsn": t}
    event = {"before": change.before, "after": change.after, "op": op, "ts_ms": t, "source": source}
    yield KeyedMessage(_json(change.key), _json(event))
    if op == "d":
        yield KeyedMessage(_json(change.key), None)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _null(values: Row) -> str:
    return next(name for name, value in values.items() if value is None)
