"""All collections with their frontiers, and every change of them as events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.serve.hub import Hub
from dbt_incremental_dd.trace.holds import Hold, holds

POLL_SECONDS = 0.5
"""Interval at which all collections are checked."""


def describe_all(hub: Hub) -> list[dict[str, Any]]:
    """Each collection as ``dbt-dd status`` reports it, with its columns and its number of followers; a damaged one with
    its ``error`` instead."""
    database = hub.database
    held = _holds(hub)
    found = []
    for collection in database.collections():
        try:
            found.append(describe(hub, collection, held.get(collection.name, ())))
        except DifferentialError as error:
            found.append({"name": collection.name, "error": error.message, "remedy": error.remedy})
    return found


def describe(hub: Hub, collection: Collection, held: Sequence[Hold] | None = None) -> dict[str, Any]:
    """One collection, as in ``describe_all``."""
    status = collection.status(_holds(hub).get(collection.name, ()) if held is None else held)
    columns = [{"name": column.name, "type": column.type.json} for column in collection.schema]
    followers = hub.followers.get(collection.name, 0)
    return {**asdict(status), "at": status.at, "columns": columns, "followers": followers}


def _holds(hub: Hub) -> Mapping[str, tuple[Hold, ...]]:
    """The holds on each collection. Empty if a collection is damaged, so that the others can still be described."""
    try:
        return holds(hub.database.storage)
    except DifferentialError:
        return {}


async def changes(hub: Hub) -> AsyncIterator[str]:
    """Server-sent events: a list of all collections, then those whose frontier or number of followers has changed.
    ``gone`` lists the names of removed collections."""
    reported: dict[str, Any] = {}
    while not hub.is_closed:
        current = await asyncio.to_thread(_versions, hub)
        if {name for name, version in current.items() if reported.get(name) != version} or not reported:
            found = await asyncio.to_thread(describe_all, hub)
            fresh = [one for one in found if reported.get(one["name"]) != current.get(one["name"])]
            yield f"data: {json.dumps({'collections': fresh})}\n\n"
        gone = sorted(set(reported) - set(current))
        if gone:
            yield f"data: {json.dumps({'collections': [], 'gone': gone})}\n\n"
        reported = current or {"": None}
        await asyncio.sleep(POLL_SECONDS)


def _versions(hub: Hub) -> dict[str, Any]:
    """A value for each collection that differs whenever its entry in the list does."""
    found: dict[str, Any] = {}
    for place in hub.database.storage.collections():
        try:
            log = place.log()
            found[place.name] = log and (log.version, hub.followers.get(place.name, 0))
        except DifferentialError as error:
            found[place.name] = str(error)
    return {name: version for name, version in found.items() if version is not None}
