"""Collections as Airflow's assets: tasks that advance one have it as an outlet, and other DAGs are scheduled on it."""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from airflow_differential.triggers import FrontierEventTrigger

SCHEME = "x-differential"


def asset(collection: str) -> Asset:
    """The asset of a collection, ``schema.identifier``."""
    name = collection.lower()
    return Asset(name=name, uri=f"{SCHEME}://{name}")


def watched(collection: str, state_root: str, poke_interval: float = 5.0) -> Asset:
    """The asset, and a watcher that tells each time that the collection's frontier has moved, whoever has moved it."""
    found = asset(collection)
    trigger = FrontierEventTrigger(state_root=state_root, collection=found.name, poke_interval=poke_interval)
    found.watchers = [AssetWatcher(name=f"frontier of {found.name}", trigger=trigger)]
    return found
