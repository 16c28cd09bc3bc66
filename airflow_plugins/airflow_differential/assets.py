"""Collections as Airflow assets: outlets of the tasks that advance them, on which other DAGs can be scheduled."""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from airflow_differential.triggers import FrontierEventTrigger

SCHEME = "x-differential"


def asset(collection: str) -> Asset:
    """The asset of a collection, ``schema.identifier``."""
    name = collection.lower()
    return Asset(name=name, uri=f"{SCHEME}://{name}")


def watched(collection: str, state_root: str, poke_interval: float = 5.0) -> Asset:
    """The asset, with a watcher that reports each advance of the collection's frontier, whoever made it."""
    found = asset(collection)
    trigger = FrontierEventTrigger(state_root=state_root, collection=found.name, poke_interval=poke_interval)
    found.watchers = [AssetWatcher(name=f"frontier of {found.name}", trigger=trigger)]
    return found
