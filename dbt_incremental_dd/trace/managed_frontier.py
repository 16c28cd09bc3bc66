"""Managed frontiers: the time up to which a source has been declared complete."""

from __future__ import annotations

import json

from dbt_incremental_dd.core.errors import StateError
from dbt_incremental_dd.core.time import Time
from dbt_incremental_dd.trace.layout import CollectionStore
from dbt_incremental_dd.trace.lock import writing

_FILE = "frontier.json"


def declared(place: CollectionStore) -> Time | None:
    """The latest time up to which the source has been declared complete; None if it has not been. Raises StateError if
    the stored time cannot be read."""
    text = place.storage.read_small(_path(place))
    if text is None:
        return None
    try:
        return int(json.loads(text)["complete_up_to"])
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"the frontier of {place.name} at {place.uri}/{_FILE} cannot be read: {error}",
            f"Remove the file and advance it again: dbt-dd advance {place.name} --to TIME.",
        ) from error


def declare(place: CollectionStore, complete_up_to: Time) -> Time:
    """Declares the source complete up to that time; a frontier never goes back. Returns the time that holds now."""
    with writing(place):
        before = declared(place)
        if before is not None and before >= complete_up_to:
            return before
        place.storage.write_small(_path(place), json.dumps({"complete_up_to": complete_up_to}))
    return complete_up_to


def _path(place: CollectionStore) -> str:
    return f"collections/{place.folder}/{_FILE}"
