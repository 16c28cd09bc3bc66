"""Sensors that wait until a source is complete, a collection has reached a time, a target lag needs a run, or
compaction is worthwhile.

All are deferrable: a deferred sensor occupies no worker slot while its trigger waits. Otherwise they poke, in either of
Airflow's modes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from airflow.providers.standard.utils.skipmixin import SkipMixin
from airflow.sdk import BaseSensorOperator, Context
from airflow.triggers.base import BaseTrigger

from airflow_differential import collections
from airflow_differential.conditions import Condition
from airflow_differential.links import CollectionsLink
from airflow_differential.outlets import advance
from airflow_differential.times import INTERVAL_END, clock, milliseconds
from airflow_differential.triggers import ConditionTrigger, FrontierTrigger, ReclaimableTrigger, TargetLagTrigger


class _DeferrableSensor(BaseSensorOperator):
    """``holds`` and ``trigger`` define what it waits for; the result of ``done`` is the task's value."""

    operator_extra_links = (CollectionsLink(),)

    def __init__(self, *, deferrable: bool = True, poke_interval: timedelta | float = 30, **kwargs: Any) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.deferrable = deferrable

    def execute(self, context: Context) -> Any:
        self.check()
        if not self.deferrable:
            super().execute(context)
            return self.done(context)
        if self.holds():
            return self.done(context)
        return self.defer(trigger=self.trigger(), method_name="resumed", timeout=timedelta(seconds=self.timeout))

    def resumed(self, context: Context, event: dict[str, Any]) -> Any:
        """Called when the trigger has fired. Raises RuntimeError with the trigger's error, if any."""
        if event["error"]:
            raise RuntimeError(event["error"])
        return self.done(context)

    def poke(self, context: Context) -> bool:
        return self.holds()

    @abstractmethod
    def check(self) -> None:
        """Raises an error, or logs a warning, if waiting would be in vain."""

    @abstractmethod
    def holds(self) -> bool:
        """Whether the sensor is satisfied."""

    @abstractmethod
    def trigger(self) -> BaseTrigger:
        """The trigger to defer to."""

    @abstractmethod
    def done(self, context: Context) -> Any:
        """Called once the sensor is satisfied. Returns the task's value."""


class SourceFrontierSensor(_DeferrableSensor):
    """Waits until a source is complete up to a time, and then advances its frontier to it.

    ``source``: the collection's name, ``schema.identifier``, of a source with ``frontier: managed``. ``complete``: a
    condition of ``airflow_differential.conditions``. ``up_to``: by default the end of the data interval. ``first``: it
    may be a new source beside others. Returns ``{"source", "complete_up_to"}``, which the outlets' events carry as
    well.
    """

    template_fields: Sequence[str] = ("state_root", "source", "complete", "up_to")
    ui_color = "#dcefe4"

    def __init__(
        self,
        *,
        state_root: str,
        source: str,
        complete: Condition,
        up_to: str = INTERVAL_END,
        first: bool = False,
        **kwargs: Any,
    ) -> None:
        if not complete.in_triggerer:
            kwargs = {"mode": "reschedule", **kwargs, "deferrable": False}
        kwargs["inlets"] = [*kwargs.get("inlets", ()), *complete.assets]
        super().__init__(**kwargs)
        self.state_root = state_root
        self.source = source
        self.first = first
        self.complete = complete
        self.up_to = up_to

    def check(self) -> None:
        collections.require_managed(self.state_root, self.source, first=self.first)

    def holds(self) -> bool:
        return self.complete.holds(milliseconds(self.up_to))

    def trigger(self) -> BaseTrigger:
        return ConditionTrigger(self.complete.serialize(), milliseconds(self.up_to), self.poke_interval)

    def done(self, context: Context) -> dict[str, Any]:
        return advance(self, context, self.state_root, self.source, self.up_to, first=self.first)


class CollectionFrontierSensor(_DeferrableSensor):
    """Waits until a time is final in a collection: by default the end of the data interval. Returns the collection's
    frontiers and sizes."""

    template_fields: Sequence[str] = ("state_root", "collection", "passes")
    ui_color = "#dce6ef"

    def __init__(self, *, state_root: str, collection: str, passes: str = INTERVAL_END, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.state_root = state_root
        self.collection = collection
        self.passes = passes

    def check(self) -> None:
        _warn_if_missing(self, self.state_root, self.collection)

    def holds(self) -> bool:
        return collections.upper(self.state_root, self.collection) > milliseconds(self.passes)

    def trigger(self) -> BaseTrigger:
        return FrontierTrigger(self.state_root, self.collection, milliseconds(self.passes), self.poke_interval)

    def done(self, context: Context) -> dict[str, Any]:
        return collections.state(self.state_root, self.collection)


class CompactionSensor(_DeferrableSensor):
    """Waits until compacting a collection is worthwhile: it would merge so many ``files`` or ``updates``, or ``since``
    would advance by ``age``. Returns what there is to gain."""

    template_fields: Sequence[str] = ("state_root", "collection", "retain_history")
    ui_color = "#e8e0ef"

    def __init__(
        self,
        *,
        state_root: str,
        collection: str,
        retain_history: str | None = None,
        files: int | None = 20,
        updates: int | None = None,
        age: timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        thresholds = {
            "files": files,
            "updates": updates,
            "age": None if age is None else age // timedelta(milliseconds=1),
        }
        self.at_least = {name: least for name, least in thresholds.items() if least is not None}
        if not self.at_least:
            raise ValueError("Give at least one of files, updates and age.")
        self.state_root = state_root
        self.collection = collection
        self.retain_history = retain_history

    def check(self) -> None:
        _warn_if_missing(self, self.state_root, self.collection)

    def holds(self) -> bool:
        return self.trigger().is_enough()

    def trigger(self) -> ReclaimableTrigger:
        arguments = (self.state_root, self.collection, self.retain_history, self.at_least, self.poke_interval)
        return ReclaimableTrigger(*arguments)

    def done(self, context: Context) -> dict[str, int]:
        return collections.reclaimable(self.state_root, self.collection, self.retain_history)


class TargetLagSensor(_DeferrableSensor, SkipMixin):
    """Waits until a model must be run so that a ``target_lag`` is kept, its own or that of one downstream.

    ``names``: the collections that it asks for (default: all that are stored). One that has never been stored is due,
    and so is always one without a target lag. Sources are not looked at: each is taken to have changed right after it
    was last read. ``tasks``: the id of each collection's task, of which those that are not due are skipped.
    ``threads``: models that run at the same time. Returns ``{"due", "time"}``: collections, and the time (ms) to run
    them at.
    """

    template_fields: Sequence[str] = ("state_root", "names")
    ui_color = "#e3ebd9"

    def __init__(
        self,
        *,
        state_root: str,
        names: Sequence[str] = (),
        tasks: Mapping[str, str] | None = None,
        threads: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.state_root = state_root
        self.names = names
        self.tasks = dict(tasks or {})
        self.threads = threads

    def check(self) -> None:
        """Everything may still have to be built."""

    def holds(self) -> bool:
        return self.trigger().is_due()

    def trigger(self) -> TargetLagTrigger:
        return TargetLagTrigger(self.state_root, self.names, self.threads, self.poke_interval)

    def execute(self, context: Context) -> Any:
        return self._skipping(context, super().execute(context))

    def resumed(self, context: Context, event: dict[str, Any]) -> Any:
        return self._skipping(context, super().resumed(context, event))

    def done(self, context: Context) -> dict[str, Any]:
        now = clock()
        return {"due": collections.due(self.state_root, self.names, now, self.threads), "time": now}

    def _skipping(self, context: Context, found: dict[str, Any]) -> dict[str, Any]:
        """Skips the tasks of what is not due. Airflow stores no value of a task that ends by that."""
        left = [task for name, task in self.tasks.items() if name not in found["due"]]
        if left:
            context["ti"].xcom_push(key="return_value", value=found)
            self.skip(context["ti"], [context["dag"].get_task(task) for task in left])
        return found


def _warn_if_missing(sensor: _DeferrableSensor, state_root: str, collection: str) -> None:
    """The collection may be built later, or its name be misspelled."""
    message = collections.missing(state_root, collection)
    if message:
        sensor.log.warning(message)
