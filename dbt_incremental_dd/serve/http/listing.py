"""All collections with their frontiers, and every change of them as events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.core.rights import EVERYTHING
from dbt_incremental_dd.serve.reader import Reader
from dbt_incremental_dd.trace.freshness import Stored
from dbt_incremental_dd.trace.holds import Hold, holds
from dbt_incremental_dd.trace.status import Reclaimable, Status

POLL_SECONDS = 0.5
"""Interval at which all collections are checked."""


def describe_all(reader: Reader) -> list[dict[str, Any]]:
    """Each collection as ``dbt-dd status`` reports it, with its columns, its number of followers, and a model's
    freshness (times in ms), if it has a target lag; a damaged one with its ``error`` instead."""
    held = all_holds(reader)
    found = []
    for collection in reader.database.collections():
        try:
            found.append(describe(reader, collection, held.get(collection.name, ())))
        except DifferentialError as error:
            found.append({"name": collection.name, "error": error.message, "remedy": error.remedy})
    return found


def describe(reader: Reader, collection: Collection, held: Sequence[Hold] | None = None) -> dict[str, Any]:
    """One collection, as in ``describe_all``."""
    status = collection.status(all_holds(reader).get(collection.name, ()) if held is None else held)
    columns = [{"name": column.name, "type": column.type.json} for column in collection.schema]
    followers = reader.followers(collection.name)
    fresh = None if status.target_lag is None else collection.freshness()
    told = {**_visible(reader, status), "freshness": None if fresh is None else asdict(fresh)}
    return {**told, "at": status.at, "columns": columns, "followers": followers}


def _visible(reader: Reader, status: Status) -> dict[str, Any]:
    """The status without names of collections that the reader may not read, nor of a table that was adopted. Of a
    collection with rows that it may not read, nothing is told that depends on their number: None."""
    told = asdict(status)
    if reader.user.rights == EVERYTHING:
        return told
    may_read, told["adopted"] = reader.user.rights.may_read, ""
    told["inputs"] = [name for name in status.inputs if may_read(name)]
    if len(told["inputs"]) < len(status.inputs):
        told["fallbacks"] = ()
    kind, _, holder = status.held_back_by.partition(" ")
    if status.held_back_by and not (kind == "model" and may_read(holder)):
        told["held_back_by"] = "another reader"
    if not reader.has_all_rows(status.name):
        told |= dict.fromkeys(("rows", "updates", "files", "bytes"))
        told |= {"change": {}, "reclaimable": asdict(Reclaimable(0, 0, status.reclaimable.age))}
    return told


def all_holds(reader: Reader) -> Mapping[str, tuple[Hold, ...]]:
    """The holds on each collection. Empty if a collection is damaged, so that the others can still be described."""
    try:
        return holds(reader.database.storage)
    except DifferentialError:
        return {}


async def changes(reader: Reader) -> AsyncIterator[str]:
    """Server-sent events: a list of all collections, then those whose frontier or number of followers has changed.
    ``gone`` lists the names of removed collections."""
    reported: dict[str, Any] = {}
    promised: dict[str, bool] = {}
    while not reader.is_closed:
        current = await asyncio.to_thread(_versions, reader, [name for name, has in promised.items() if has])
        if {name for name, version in current.items() if reported.get(name) != version} or not reported:
            found = await asyncio.to_thread(describe_all, reader)
            fresh = [one for one in found if reported.get(one["name"]) != current.get(one["name"])]
            promised.update({one["name"]: one.get("target_lag") is not None for one in found})
            yield f"data: {json.dumps({'collections': fresh})}\n\n"
        gone = sorted(set(reported) - set(current))
        if gone:
            yield f"data: {json.dumps({'collections': [], 'gone': gone})}\n\n"
        reported = current or {"": None}
        await asyncio.sleep(POLL_SECONDS)


def _versions(reader: Reader, promised: Sequence[str]) -> dict[str, Any]:
    """A value for each collection that differs whenever its entry in the list does. ``promised``: those with a target
    lag, which may fall behind without a commit of their own."""
    found: dict[str, Any] = {}
    stored = Stored(reader.database.storage)
    for place in reader.database.places():
        try:
            log = place.log()
            fresh = stored.freshness(place.name) if place.name in promised else None
            found[place.name] = log and (log.version, reader.followers(place.name), fresh)
        except DifferentialError as error:
            found[place.name] = str(error)
    return {name: version for name, version in found.items() if version is not None}
