"""Batches as JSON messages for web clients, each of bounded size.

    {"timestamp": 1714557600000, "inserted": [{...}], "deleted": [{...}]}

A row is repeated as often as its diff. ``snapshot`` is true if the rows replace all that the client has, ``more`` if
the next message continues the same time. With a key, the lists are ``upserted``, ``deleted`` and ``key_violations``.
With progress, ``{"timestamp": t, "progress": true}`` states that no more updates come below ``t``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.schema import DIFF, TIME
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.subscribe.chunks import chunks
from dbt_incremental_dd.subscribe.json_values import json_rows
from dbt_incremental_dd.subscribe.shape import DELETE, STATE, UPSERT
from dbt_incremental_dd.subscribe.subscription import Batch

MAX_ROWS = 2_000
"""Maximum number of rows in a message."""


@dataclass(frozen=True)
class ClientMessage:
    """``data``: the message's JSON; empty if it only moves ``at``. ``at``: the time up to which the client has
    everything once it has this message; None if more of that time follows."""

    data: str
    at: Time | None


def messages(batch: Batch, *, progress: bool) -> Iterator[ClientMessage]:
    """All messages of a batch, in order."""
    is_snapshot = batch.after is None
    for one in batch.times():
        if one.updates.num_rows or is_snapshot:
            yield from _of_one_time(one, is_snapshot=is_snapshot)
        elif not progress:
            yield ClientMessage("", one.timestamp)
        is_snapshot = False
    if progress:
        yield ClientMessage(json.dumps({"timestamp": batch.upper, "progress": True}), batch.timestamp)


def error_json(error: DifferentialError) -> str:
    """An error as JSON: for web sockets, events and HTTP responses."""
    return json.dumps({"error": error.message, "remedy": error.remedy})


def _of_one_time(batch: Batch, *, is_snapshot: bool) -> Iterator[ClientMessage]:
    pending: dict[str, Any] | None = None
    for chunk in _payloads(batch.updates):
        if pending is not None:
            yield ClientMessage(json.dumps({**pending, "more": True}), None)
        pending = {"timestamp": batch.timestamp, **({"snapshot": True} if is_snapshot else {}), **chunk}
        is_snapshot = False
    last = pending or {"timestamp": batch.timestamp, "snapshot": True, **_empty_payload(batch.updates.schema)}
    yield ClientMessage(json.dumps(last), batch.timestamp)


def _payloads(updates: pa.Table) -> Iterator[dict[str, Any]]:
    by_key = STATE in updates.schema.names
    for chunk in chunks(updates, MAX_ROWS):
        rows = json_rows(chunk.drop_columns([TIME]))
        yield from [_states(rows)] if by_key else _diffs(rows)


def _states(rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, list[dict[str, Any]]] = {"upserted": [], "deleted": [], "key_violations": []}
    names = {UPSERT: "upserted", DELETE: "deleted"}
    for row in rows:
        found[names.get(row.pop(STATE), "key_violations")].append(row)
    return {name: rows for name, rows in found.items() if rows or name != "key_violations"}


def _diffs(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each row repeated as often as its diff, ``MAX_ROWS`` rows at a time."""
    found: dict[str, list[dict[str, Any]]] = {"inserted": [], "deleted": []}
    size = 0
    for row in rows:
        diff = int(row.pop(DIFF))
        while diff:
            step = max(-(MAX_ROWS - size), min(MAX_ROWS - size, diff))
            found["inserted" if step > 0 else "deleted"] += [row] * abs(step)
            size, diff = size + abs(step), diff - step
            if size == MAX_ROWS:
                yield found
                found, size = {"inserted": [], "deleted": []}, 0
    if size:
        yield found


def _empty_payload(schema: pa.Schema) -> dict[str, Any]:
    return {"upserted": [], "deleted": []} if STATE in schema.names else {"inserted": [], "deleted": []}
