"""Triggers for deferred sensors and asset watchers. They read logs and files off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

from airflow_differential import collections
from airflow_differential.conditions import condition

_HERE = "airflow_differential.triggers"


class ConditionTrigger(BaseTrigger):
    """Fires when a condition on a source holds. ``condition``: serialized; ``up_to``: ms."""

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
    """Fires when ``passes`` (ms) is final in a collection."""

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
    """Fires when compacting a collection would gain one of ``at_least``: files, updates, age (ms)."""

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
        """Whether the gain is large enough now."""
        found = collections.reclaimable(self.state_root, self.collection, self.retain_history)
        return any(found[name] >= least for name, least in self.at_least.items())


class TargetLagTrigger(BaseTrigger):
    """Fires when one of the collections (default: any) must be run for a target lag."""

    def __init__(self, state_root: str, names: Sequence[str], threads: int, poke_interval: float) -> None:
        super().__init__()
        self.state_root = state_root
        self.names = list(names)
        self.threads = threads
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("state_root", "names", "threads", "poke_interval")
        return f"{_HERE}.TargetLagTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async for event in _once(self.is_due, self.poke_interval):
            yield event

    def is_due(self) -> bool:
        """Whether something is due now."""
        return bool(collections.due(self.state_root, self.names, threads=self.threads))


class FrontierEventTrigger(BaseEventTrigger):
    """Fires on each advance of a collection's frontier, with ``upper`` and the value ``before`` (ms); for an
    AssetWatcher.

    The last reported frontier is stored with the asset, so that a restarted triggerer reports nothing twice.
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
        reported = await self._last_reported()
        while True:
            upper = await asyncio.to_thread(collections.upper, self.state_root, self.collection)
            if upper > reported:
                yield TriggerEvent({"collection": self.collection, "upper": upper, "before": reported})
                reported = upper
                await self._store_reported(upper)
            await asyncio.sleep(self.poke_interval)

    async def _last_reported(self) -> int:
        if self.asset_state_store is None:
            return await asyncio.to_thread(collections.upper, self.state_root, self.collection)
        return int(await self.asset_state_store.aget(self._key, 0))  # type: ignore[arg-type]

    async def _store_reported(self, upper: int) -> None:
        if self.asset_state_store is not None:
            await self.asset_state_store.aset(self._key, upper)

    @property
    def _key(self) -> str:
        return f"upper of {self.collection}"


async def _once(holds: Callable[[], bool], poke_interval: float) -> AsyncIterator[TriggerEvent]:
    """One event when ``holds`` returns true, or with the error that it raised: the task then fails with its message."""
    while True:
        try:
            if await asyncio.to_thread(holds):
                yield TriggerEvent({"error": None})
                return
        except Exception as error:
            yield TriggerEvent({"error": f"{type(error).__name__}: {error}"})
            return
        await asyncio.sleep(poke_interval)
