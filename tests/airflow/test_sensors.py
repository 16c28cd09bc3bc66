"""Sensors and triggers, without a scheduler: what they wait for, and what they do then."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import DownstreamTasksSkipped, TaskDeferred

import dbt_incremental_dd
from airflow_differential import collections
from airflow_differential.conditions import CallableCondition, FilesExist
from airflow_differential.sensors import (
    CollectionFrontierSensor,
    CompactionSensor,
    SourceFrontierSensor,
    TargetLagSensor,
)
from airflow_differential.times import milliseconds
from airflow_differential.triggers import (
    ConditionTrigger,
    FrontierEventTrigger,
    FrontierTrigger,
    ReclaimableTrigger,
    TargetLagTrigger,
)
from dbt_incremental_dd.core.manifest import Manifest, ModelManifest, RecordedRun, SourceManifest
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import now
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow

DAY = "2013-06-02T00:00:00+00:00"


def stored(root: Path, upper: int, rows: int = 0, target_lag: str | None = None) -> None:
    """A model whose frontier is there, with so many rows more."""
    place = Storage(str(root)).collection("m.sums")
    log = place.create(Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN)))
    times = pa.array([upper - 1] * rows, pa.int64())
    table = pa.table({"k": times, "dd_time": times, "dd_diff": pa.array([1] * rows, pa.int64())})
    files = (write_arrow(place.storage, place.trace_uri, table, log.schema),) if rows else ()
    log.commit(Commit(add=files, upper=upper, manifest=place.write_manifest(ModelManifest(target_lag=target_lag))))


async def first(trigger: Any, seconds: float = 20) -> Any:
    """The payload of a trigger's first event."""
    async with asyncio.timeout(seconds):
        async for event in trigger.run():
            return event.payload
    return None


def chain(root: Path, t: int, up_to: int, target_lag: int | str | None = 60_000, seconds: float = 2.0) -> None:
    """``m.mart`` over ``m.stg`` over ``s.t``, which was read at ``t``; the models show the moment ``up_to``."""
    run = RecordedRun("delta", 1, 1, seconds)
    models = {"m.stg": ("s.t", "downstream"), "m.mart": ("m.stg", target_lag)}
    manifests: dict[str, Manifest] = {
        name: ModelManifest(inputs={"x": one}, target_lag=lag, runs=(run,)) for name, (one, lag) in models.items()
    }
    for name, manifest in {"s.t": SourceManifest(), **manifests}.items():
        place = Storage(str(root)).collection(name)
        log = place.create(Schema((Column("k", LONG), TIME_COLUMN, DIFF_COLUMN)))
        log.commit(Commit(upper=(t if name == "s.t" else up_to) + 1, manifest=place.write_manifest(manifest)))


def test_target_lags(tmp_path: Path) -> None:
    """Of nothing but files: a source may have changed right after it was last read."""
    root, t = str(tmp_path), 1_000_000
    assert collections.due(root, []) == [] and collections.due(root, ["m.New"]) == ["m.new"]
    chain(tmp_path, t, t)
    due_at = t + 60_000 - 2 * 4000
    assert collections.due(root, [], due_at - 1) == [] and collections.due(root, [], due_at) == ["m.stg", "m.mart"]
    assert collections.due(root, ["m.mart", "m.x"], due_at) == ["m.x", "m.mart"]
    assert dbt_incremental_dd.open(root).due(t).at == due_at
    chain(tmp_path, t + 100_000, t + 100_000)
    assert collections.due(root, [], t + 110_000) == []
    chain(tmp_path, t + 100_001, t + 100_001, target_lag=None)
    assert collections.due(root, [], t + 110_000) == ["m.stg", "m.mart"], "without a target lag, at once"


def test_a_sensor_of_target_lags_skips_what_is_not_due(tmp_path: Path) -> None:
    t = now()
    chain(tmp_path, t, t, target_lag=2000, seconds=0.1)
    with DAG("d") as dag:
        tasks = {name: EmptyOperator(task_id=name[2:]).task_id for name in ("m.stg", "m.mart", "m.idle")}
        options = {"state_root": str(tmp_path), "names": list(tasks), "poke_interval": 0.05}
        waiting = TargetLagSensor(task_id="due", tasks=tasks, **options)
        plain = TargetLagSensor(task_id="plain", **options)
    with pytest.raises(TaskDeferred) as deferred:
        TargetLagSensor(task_id="all", state_root=str(tmp_path), poke_interval=0.05).execute({})
    path, arguments = deferred.value.trigger.serialize()
    assert path.endswith("TargetLagTrigger") and json.loads(json.dumps(arguments)) == arguments
    event = asyncio.run(first(TargetLagTrigger(**arguments)))
    assert event == {"error": None} and now() >= t + 1600
    assert plain.resumed({}, event)["due"] == ["m.idle", "m.stg", "m.mart"]
    later = now()
    chain(tmp_path, later, later, target_lag=3_600_000)
    pushed: dict[str, Any] = {}
    ti = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}), map_index=-1)
    with pytest.raises(DownstreamTasksSkipped) as skipped:
        waiting.execute({"ti": ti, "dag": dag})
    assert sorted(skipped.value.tasks) == ["mart", "stg"]
    assert pushed["return_value"]["due"] == ["m.idle"] and pushed["return_value"]["time"] >= later


def sensor(tmp_path: Path, **options: Any) -> SourceFrontierSensor:
    """One that waits for a file."""
    ready = FilesExist(f"{tmp_path}/_SUCCESS")
    return SourceFrontierSensor(
        task_id="wait", state_root=str(tmp_path / "state"), source="s.t", complete=ready, up_to=DAY, **options
    )


def declared(tmp_path: Path) -> Any:
    found = list((tmp_path / "state").glob("collections/s.t/frontier.json"))
    return json.loads(found[0].read_text())["complete_up_to"] if found else None


def test_a_deferred_sensor_resumes_and_advances(tmp_path: Path) -> None:
    waiting = sensor(tmp_path, poke_interval=0.05)
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    path, arguments = deferred.value.trigger.serialize()
    assert path.endswith("ConditionTrigger") and json.loads(json.dumps(arguments)) == arguments
    (tmp_path / "_SUCCESS").touch()
    event = asyncio.run(first(ConditionTrigger(**arguments)))
    assert declared(tmp_path) is None
    told = waiting.resumed({}, event)
    assert told == {"source": "s.t", "complete_up_to": milliseconds(DAY)}
    assert declared(tmp_path) == milliseconds(DAY)
    waiting.up_to = "2013-06-01T00:00:00Z"
    assert waiting.resumed({}, event)["complete_up_to"] == milliseconds(DAY), "a cleared task takes nothing back"


def test_a_sensor_that_need_not_wait_does_not(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").touch()
    for deferrable in (True, False):
        assert sensor(tmp_path, deferrable=deferrable).execute({})["complete_up_to"] == milliseconds(DAY)


def test_a_condition_that_fails_fails_the_task(tmp_path: Path) -> None:
    trigger = ConditionTrigger(CallableCondition("nowhere.at_all").serialize(), 1, 0.05)
    event = asyncio.run(first(trigger))
    with pytest.raises(RuntimeError, match=r"nowhere\.at_all.*cannot be imported"):
        sensor(tmp_path).resumed({}, event)


def test_a_collection_is_far_enough(tmp_path: Path) -> None:
    waiting = CollectionFrontierSensor(
        task_id="wait", state_root=str(tmp_path), collection="m.sums", passes=DAY, poke_interval=0.05
    )
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, FrontierTrigger)

    async def waited() -> Any:
        event = asyncio.create_task(first(trigger))
        await asyncio.sleep(0.2)
        assert not event.done()
        stored(tmp_path, milliseconds(DAY))
        await asyncio.sleep(0.2)
        assert not event.done(), "that time is not final yet"
        stored(tmp_path, milliseconds(DAY) + 1)
        return await event

    told = waiting.resumed({}, asyncio.run(waited()))
    assert told["upper"] == milliseconds(DAY) + 1 and told["collection"] == "m.sums"


def test_a_watcher_tells_each_advance_once(tmp_path: Path) -> None:
    class Store:
        """Airflow's, of one asset."""

        def __init__(self) -> None:
            self.kept: dict[str, Any] = {}

        async def aget(self, key: str, default: Any = None) -> Any:
            return self.kept.get(key, default)

        async def aset(self, key: str, value: Any) -> None:
            self.kept[key] = value

    store = Store()

    async def watched() -> list[Any]:
        found: list[Any] = []

        async def watch() -> None:
            trigger = FrontierEventTrigger(str(tmp_path), "m.sums", poke_interval=0.02)
            trigger.asset_state_store = store  # type: ignore[assignment]
            async for event in trigger.run():
                found.append((event.payload["before"], event.payload["upper"]))

        for upper in (11, 11, 21):
            stored(tmp_path, upper)
            watching = asyncio.create_task(watch())
            await asyncio.sleep(0.3)
            watching.cancel()
        return found

    assert asyncio.run(watched()) == [(0, 11), (11, 21)]


def test_there_is_enough_to_compact(tmp_path: Path) -> None:
    def waiting(**options: Any) -> CompactionSensor:
        return CompactionSensor(
            task_id="wait", state_root=str(tmp_path), collection="m.sums", poke_interval=0.05, **options
        )

    assert not waiting().holds(), "it was never stored"
    for upper in (11, 21, 31):
        stored(tmp_path, upper, rows=2)
    assert not waiting(files=1).holds(), "its window is a day"
    assert not waiting(files=3, retain_history="0 ms").holds()
    sensor = waiting(files=1, retain_history="10 ms")
    assert sensor.holds() and sensor.done({}) == {"files": 1, "updates": 2, "age": 20}
    assert waiting(files=None, age=timedelta(milliseconds=20), retain_history="10 ms").holds()
    _, arguments = sensor.trigger().serialize()
    assert asyncio.run(first(ReclaimableTrigger(**arguments))) == {"error": None}
    with pytest.raises(ValueError, match="files, updates and age"):
        waiting(files=None)


def test_what_was_never_stored_is_at_the_beginning(tmp_path: Path) -> None:
    assert collections.upper(str(tmp_path), "m.none") == 0
