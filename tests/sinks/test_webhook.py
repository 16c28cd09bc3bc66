"""Changes as webhooks: a receiver that fails at random gets each of them, in order by key, and signed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError, SinkError
from dbt_incremental_dd.sinks.webhook import SECRET, Sink, publish
from dbt_incremental_dd.trace.holds import holds_of_readers
from tests.sinks.receiver import SECRET_TEXT, Receiver, rounds, sink_to
from tests.subscribe.stored import Stored

ROOT = Path(__file__).parents[2]


def test_a_thousand_to_a_receiver_that_fails_at_random(tmp_path: Path, receiver: Receiver) -> None:
    stored, chance, failing = Stored(tmp_path), random.Random(1), random.Random(2)
    stored.commit({}, 1)
    publish(stored.collection, sink_to(receiver), once=True)
    receiver.answer = lambda event: failing.choice([200, 200, 200, 200, 500, 503, 429, 0])
    rows = rounds(stored, chance, 1, 100)
    publish(stored.collection, sink_to(receiver), once=True)
    changed = stored.collection.changes()
    by_key = {(t, k) for t, k in zip(changed["dd_time"].to_pylist(), changed["k"].to_pylist(), strict=True)}
    assert len(by_key) > 1_000
    assert Counter(set(receiver.ids)).total() == len(by_key), "each is there, under an id of its own"
    assert {(event["time"], event["key"]["k"]) for event in receiver.taken} == by_key
    last: dict[int, int] = {}
    state: dict[int, str] = {}
    for event in receiver.taken:
        key = event["key"]["k"]
        assert event["time"] >= last.get(key, 0), "in order by key"
        if event["time"] > last.get(key, 0):
            assert (event["before"] or {}).get("v") == state.get(key)
            assert event["type"] == _type(event)
        last[key] = event["time"]
        state.pop(key, None)
        if event["after"] is not None:
            state[key] = event["after"]["v"]
    assert state == rows


def _type(event: dict[str, Any]) -> str:
    if event["after"] is None:
        return "row.deleted"
    return "row.inserted" if event["before"] is None else "row.updated"


def test_a_receiver_that_is_down_ends_the_publisher_and_nothing_is_lost(tmp_path: Path, receiver: Receiver) -> None:
    stored = Stored(tmp_path)
    stored.commit({1: Counter({(k, "a"): 1 for k in range(50)})}, 2)
    receiver.answer = lambda event: 503
    with pytest.raises(SinkError, match=r"not delivered to 127\.0\.0\.1:\d+ in 3 attempts: status 503"):
        publish(stored.collection, sink_to(receiver, attempts=3), once=True)
    receiver.answer = lambda event: 200
    publish(stored.collection, sink_to(receiver), once=True)
    assert {event["key"]["k"] for event in receiver.taken} == set(range(50))
    nobody = Sink("http://127.0.0.1:1/", ("k",), attempts=2, wait=0.001)
    with pytest.raises(SinkError, match="in 2 attempts"):
        publish(stored.collection, nobody, once=True)


def test_first_rows_of_which_some_were_sent_are_sent_as_of_the_same_time(tmp_path: Path, receiver: Receiver) -> None:
    stored = Stored(tmp_path)
    stored.commit({1: Counter({(k, "a"): 1 for k in range(50)})}, 2)
    receiver.answer = lambda event: 503 if event["key"]["k"] >= 20 else 200
    with pytest.raises(SinkError, match="status 503"):
        publish(stored.collection, sink_to(receiver, attempts=2), once=True)
    assert receiver.taken
    stored.commit({2: Counter({(k, "a"): -1 for k in range(10)})}, 3)
    receiver.answer = lambda event: 200
    publish(stored.collection, sink_to(receiver), once=True)
    state: dict[int, Any] = {}
    for event in receiver.taken:
        state[event["key"]["k"]] = event["after"]
    assert {k for k, row in state.items() if row is not None} == set(range(10, 50))
    held = [hold.by for hold in holds_of_readers(stored.place)]
    assert len(held) == 1, "the hold of the first rows has gone"


def test_what_a_receiver_does_not_want_is_set_aside_or_ends_the_publisher(tmp_path: Path, receiver: Receiver) -> None:
    stored = Stored(tmp_path / "state")
    stored.commit({1: Counter({(k, "a"): 1 for k in range(5)})}, 2)
    receiver.answer = lambda event: 422 if event["key"]["k"] == 3 else 200
    with pytest.raises(SinkError, match=r"rejects a change of key \{'k': 3\}: status 422"):
        publish(stored.collection, sink_to(receiver), once=True)
    rejected = tmp_path / "rejected.jsonl"
    publish(stored.collection, sink_to(receiver, rejected=rejected), once=True)
    (line,) = map(json.loads, rejected.read_text().splitlines())
    assert line["reason"] == "status 422" and line["event"]["after"] == {"k": 3, "v": "a"}
    stored.commit({2: Counter({(3, "a"): -1, (4, "a"): -1, (4, "b"): 1})}, 3)
    count = len(receiver.taken)
    publish(stored.collection, sink_to(receiver, rejected=rejected), once=True)
    assert [event["key"]["k"] for event in receiver.taken[count:]] == [4]
    assert len(rejected.read_text().splitlines()) == 2


def test_a_publisher_that_is_ended_sends_the_rest(tmp_path: Path, receiver: Receiver) -> None:
    stored = Stored(tmp_path)
    stored.commit({}, 1)
    publish(stored.collection, sink_to(receiver), once=True)
    rounds(stored, random.Random(3), 1, 6)
    command = [
        sys.executable,
        "-m",
        "dbt_incremental_dd.cli",
        "--state-root",
        str(tmp_path),
        "publish",
        "kept",
        "--once",
    ]
    command += ["--webhook", receiver.url, "--key", "k"]
    environment = {**os.environ, SECRET: SECRET_TEXT, "DD_STOP_AT": "publish: sent#3"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    sent = set(receiver.ids)
    done = subprocess.run(
        command, cwd=ROOT, env=environment | {"DD_STOP_AT": ""}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    changed = stored.collection.changes()
    assert sent < set(receiver.ids)
    assert len(set(receiver.ids)) == len(
        set(zip(changed["dd_time"].to_pylist(), changed["k"].to_pylist(), strict=True))
    )


@pytest.mark.parametrize(
    ("sink", "told"),
    [
        (Sink("ftp://host/x", ("k",)), "is no URL of a webhook"),
        (Sink("http://host/x", ("other",)), "the key of what is published is other"),
        (Sink("http://host/x", ("k",), secret="whsec_?"), "is not base64"),
    ],
)
def test_settings_that_mean_nothing_are_refused(tmp_path: Path, sink: Sink, told: str) -> None:
    stored = Stored(tmp_path)
    stored.commit({}, 1)
    with pytest.raises(ConfigError, match=told):
        publish(stored.collection, sink, once=True)
