"""Triggers: what a deferred sensor, or an asset's watcher, waits for. They read logs and files, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

from airflow_differential import collections
from airflow_differential.conditions import condition

_HERE = "airflow_differential.triggers"


class ConditionTrigger(BaseTrigger):
    """Fires when a condition on a source holds. ``condition``: as it serializes itself; ``up_to`` in ms."""

    def __init__(self, condition: Sequence[Any], up_to: int, poke_interval: float) -> None:
        super().__init__()
        self.condition = condition
        self.up_to = up_to
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {"condition": list(self.condition), "up_to": self.up_to, "poke_interval": self.poke_interval}
        return f"{_HERE}.ConditionTrigger", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async for event in _once(lambda: condition(self.condition).holds(self.up_to), self.poke_interval):
            yield event


class FrontierTrigger(BaseTrigger):
    """Fires when times up to ``passes`` (ms) are final in a collection."""

    def __init__(self, state_root: str, collection: str, passes: int, poke_interval: float) -> None:
        super().__init__()
        self.state_root = state_root
        self.collection = collection
        self.passes = passes
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("state_root", "collection", "passes", "poke_interval")
        return f"{_HERE}.FrontierTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        def passed() -> bool:
            return collections.upper(self.state_root, self.collection) > self.passes

        async for event in _once(passed, self.poke_interval):
            yield event


class ReclaimableTrigger(BaseTrigger):
    """Fires when compacting a collection would gain one of these at least; ``at_least``: files, updates, age (ms)."""

    def __init__(
        self,
        state_root: str,
        collection: str,
        retain_history: str | None,
        at_least: dict[str, int],
        poke_interval: float,
    ) -> None:
        super().__init__()
        self.state_root = state_root
        self.collection = collection
        self.retain_history = retain_history
        self.at_least = at_least
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("state_root", "collection", "retain_history", "at_least", "poke_interval")
        return f"{_HERE}.ReclaimableTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async for event in _once(self.is_enough, self.poke_interval):
            yield event

    def is_enough(self) -> bool:
        """Whether it would, now."""
        found = collections.reclaimable(self.state_root, self.collection, self.retain_history)
        return any(found[name] >= least for name, least in self.at_least.items())


class FrontierEventTrigger(BaseEventTrigger):
    """Fires each time that a collection's frontier has moved, with ``upper`` and the one before; for an AssetWatcher.

    What was told last is kept with the asset, so that a triggerer that starts again tells nothing twice.
    """

    def __init__(self, state_root: str, collection: str, poke_interval: float = 5.0) -> None:
        super().__init__()
        self.state_root = state_root
        self.collection = collection
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("state_root", "collection", "poke_interval")
        return f"{_HERE}.FrontierEventTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        told = await self._told()
        while True:
            upper = await asyncio.to_thread(collections.upper, self.state_root, self.collection)
            if upper > told:
                yield TriggerEvent({"collection": self.collection, "upper": upper, "before": told})
                told = upper
                await self._tell(upper)
            await asyncio.sleep(self.poke_interval)

    async def _told(self) -> int:
        if self.asset_state_store is None:
            return await asyncio.to_thread(collections.upper, self.state_root, self.collection)
        return int(await self.asset_state_store.aget(self._key, 0))  # type: ignore[arg-type]

    async def _tell(self, upper: int) -> None:
        if self.asset_state_store is not None:
            await self.asset_state_store.aset(self._key, upper)

    @property
    def _key(self) -> str:
        return f"upper of {self.collection}"


async def _once(holds: Callable[[], bool], poke_interval: float) -> AsyncIterator[TriggerEvent]:
    """An event when that holds, or with what has gone wrong: the task then fails with its message."""
    while True:
        try:
            if await asyncio.to_thread(holds):
                yield TriggerEvent({"error": None})
                return
        except Exception as error:
            yield TriggerEvent({"error": f"{type(error).__name__}: {error}"})
            return
        await asyncio.sleep(poke_interval)
