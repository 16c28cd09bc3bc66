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
from dbt_incremental_dd.trace.freshness import Stored
from dbt_incremental_dd.trace.holds import Hold, holds

POLL_SECONDS = 0.5
"""Interval at which all collections are checked."""


def describe_all(hub: Hub) -> list[dict[str, Any]]:
    """Each collection as ``dbt-dd status`` reports it, with its columns, its number of followers, and a model's
    freshness (times in ms), if it has a target lag; a damaged one with its ``error`` instead."""
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
    found = None if status.target_lag is None else collection.freshness()
    freshness = None if found is None else asdict(found)
    return {**asdict(status), "at": status.at, "columns": columns, "followers": followers, "freshness": freshness}


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
    promised: dict[str, bool] = {}
    while not hub.is_closed:
        current = await asyncio.to_thread(_versions, hub, [name for name, has in promised.items() if has])
        if {name for name, version in current.items() if reported.get(name) != version} or not reported:
            found = await asyncio.to_thread(describe_all, hub)
            fresh = [one for one in found if reported.get(one["name"]) != current.get(one["name"])]
            promised.update({one["name"]: one.get("target_lag") is not None for one in found})
            yield f"data: {json.dumps({'collections': fresh})}\n\n"
        gone = sorted(set(reported) - set(current))
        if gone:
            yield f"data: {json.dumps({'collections': [], 'gone': gone})}\n\n"
        reported = current or {"": None}
        await asyncio.sleep(POLL_SECONDS)


def _versions(hub: Hub, promised: Sequence[str]) -> dict[str, Any]:
    """A value for each collection that differs whenever its entry in the list does. ``promised``: those with a target
    lag, which may fall behind without a commit of their own."""
    found: dict[str, Any] = {}
    stored = Stored(hub.database.storage)
    for place in hub.database.storage.collections():
        try:
            log = place.log()
            fresh = stored.freshness(place.name) if place.name in promised else None
            found[place.name] = log and (log.version, hub.followers.get(place.name, 0), fresh)
        except DifferentialError as error:
            found[place.name] = str(error)
    return {name: version for name, version in found.items() if version is not None}
