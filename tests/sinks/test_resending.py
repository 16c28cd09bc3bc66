"""Changes that a receiver has rejected are sent again, until each is delivered: none is lost, wherever it is killed."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt_incremental_dd.core.errors import ConfigError, SinkError
from dbt_incremental_dd.sinks.rejected import RejectedFile
from dbt_incremental_dd.sinks.resending import Resent, rejected, resend
from dbt_incremental_dd.sinks.webhook import SECRET, Sink, publish
from dbt_incremental_dd.sinks.webhook_delivery import Event
from tests.sinks.receiver import SECRET_TEXT, Receiver, rounds, sink_to
from tests.subscribe.stored import Stored
from tests.watch.test_watcher import until

_ROOT = Path(__file__).parents[2]


def _waiting(receiver: Receiver) -> dict[str, tuple[str, int]]:
    """By the receiver's own notes: the changes that it has rejected and has not confirmed since, with its last answer
    and how many rejections there were. Who sends does not hear of answers that get lost."""
    found: dict[str, tuple[str, int]] = {}
    for id, status, _, _ in receiver.requests:
        if status == 200:
            found.pop(id, None)
        elif status in (400, 422):
            found[id] = f"status {status}", found.get(id, ("", 0))[1] + 1
    return found


def _in_file(stored: Stored, sink: Sink) -> dict[str, tuple[str, int]]:
    return {one.event.id: (one.reason, one.attempts) for one in rejected(stored.collection, sink)}


def _state(receiver: Receiver) -> dict[int, str]:
    """The rows, of a receiver that ignores what is older than what it has of the key."""
    last: dict[int, tuple[int, dict[str, Any] | None]] = {}
    for event in receiver.taken:
        key = event["key"]["k"]
        if event["time"] >= last.get(key, (0, None))[0]:
            last[key] = event["time"], event["after"]
    return {key: row["v"] for key, (_, row) in last.items() if row is not None}


def test_a_receiver_that_rejects_at_random_gets_everything_at_last(tmp_path: Path, receiver: Receiver) -> None:
    stored, chance, failing = Stored(tmp_path / "state"), random.Random(1), random.Random(2)
    sink = sink_to(receiver, rejected=tmp_path / "rejected.jsonl")
    stored.commit({}, 1)
    publish(stored.collection, sink, once=True)
    rows: dict[int, str] = {}
    most, resent = 0, 0
    for step in range(12):
        receiver.answer = lambda event: failing.choices([200, 422, 400, 503, 429, 0], [6, 2, 1, 1, 1, 1])[0]
        rows = rounds(stored, chance, 1 + 5 * step, 5, rows)
        publish(stored.collection, sink, once=True)
        assert _in_file(stored, sink) == _waiting(receiver)
        most = max(most, len(_waiting(receiver)))
        before, begin = len(_waiting(receiver)), len(receiver.requests)
        if step % 3 == 2:
            found = resend(stored.collection, sink)
            assert _in_file(stored, sink) == _waiting(receiver)
            assert found == Resent(before - len(_waiting(receiver)), len(_waiting(receiver)))
            _assert_in_order_by_key(receiver, begin)
            resent += found.delivered
    assert most > 60 and resent > 100
    receiver.answer = lambda event: 200
    assert resend(stored.collection, sink).rejected == 0
    assert (tmp_path / "rejected.jsonl").read_bytes() == b""
    changed = stored.collection.changes()
    expected = set(zip(changed["dd_time"].to_pylist(), changed["k"].to_pylist(), strict=True))
    ids = {(event["time"], event["key"]["k"]): id for id, status, _, event in receiver.requests if status in (0, 200)}
    assert ids.keys() == expected and len(set(receiver.ids)) == len(expected), "each under an id of its own"
    assert _state(receiver) == rows
    bodies: dict[str, Any] = {}
    for id, _, _, event in receiver.requests:
        assert bodies.setdefault(id, event) == event, "the same change whenever it is sent"


def _assert_in_order_by_key(receiver: Receiver, begin: int) -> None:
    """Of one resend, whose changes all say that they were rejected before."""
    last: dict[int, int] = {}
    for _, _, resent, event in receiver.requests[begin:]:
        assert resent is not None and int(resent) > 0
        assert event["time"] >= last.get(event["key"]["k"], 0)
        last[event["key"]["k"]] = event["time"]


def test_a_receiver_that_is_down_leaves_what_it_did_not_take(tmp_path: Path, receiver: Receiver) -> None:
    stored, sink = _rejected_all(tmp_path, receiver, 40)
    receiver.answer = lambda event: 503 if event["key"]["k"] >= 20 else 200
    with pytest.raises(SinkError, match=r"not delivered to 127\.0\.0\.1:\d+ in 2 attempts: status 503"):
        resend(stored.collection, sink_to(receiver, rejected=sink.rejected, attempts=2))
    taken = set(receiver.ids)
    left = _in_file(stored, sink)
    assert left.keys() == {one for one, _, _, _ in receiver.requests} - taken and len(left) >= 20
    assert {why for why, _ in left.values()} == {"status 422", "status 503"}
    assert all(attempts == (1 if why == "status 422" else 2) for why, attempts in left.values())
    receiver.answer = lambda event: 200
    assert resend(stored.collection, sink) == Resent(len(left), 0)
    assert {event["key"]["k"] for event in receiver.taken} == set(range(40))


def _rejected_all(tmp_path: Path, receiver: Receiver, count: int) -> tuple[Stored, Sink]:
    """So many rows, all of which were rejected."""
    stored, sink = Stored(tmp_path / "state"), sink_to(receiver, rejected=tmp_path / "rejected.jsonl")
    stored.commit({1: Counter({(k, "a"): 1 for k in range(count)})}, 2)
    receiver.answer = lambda event: 422
    publish(stored.collection, sink, once=True)
    return stored, sink


def _dbt_dd(tmp_path: Path, receiver: Receiver, *arguments: str, stop_at: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dbt_incremental_dd.cli", "--state-root", str(tmp_path / "state"), "publish"]
    command += ["kept", "--webhook", receiver.url, "--rejected", str(tmp_path / "rejected.jsonl"), *arguments]
    environment = {**os.environ, SECRET: SECRET_TEXT, "DD_STOP_AT": stop_at}
    return subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("point", ["resend: sent", "resend: sent#2", "resend: written", "resend: replaced#2"])
def test_a_resend_that_is_killed_loses_nothing(tmp_path: Path, receiver: Receiver, point: str) -> None:
    stored, sink = _rejected_all(tmp_path, receiver, 230)
    every = set(_in_file(stored, sink))
    receiver.answer = lambda event: 422 if event["key"]["k"] % 5 == 0 else 200
    done = _dbt_dd(tmp_path, receiver, "--resend", stop_at=point)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert set(receiver.ids) and set(_in_file(stored, sink)) | set(receiver.ids) == every
    receiver.answer = lambda event: 200
    done = _dbt_dd(tmp_path, receiver, "--resend")
    assert done.returncode == 0, done.stderr
    assert set(receiver.ids) == every and _in_file(stored, sink) == {}
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix == ".part") == []


@pytest.mark.parametrize("point", ["rejected: written#3", "rejected: appended#3"])
def test_a_publisher_that_is_killed_loses_no_rejected_change(tmp_path: Path, receiver: Receiver, point: str) -> None:
    stored, sink = _rejected_all(tmp_path, receiver, 30)
    rounds(stored, random.Random(4), 2, 6, dict.fromkeys(range(30), "a"))
    receiver.answer = lambda event: 422 if event["key"]["k"] % 2 else 200
    done = _dbt_dd(tmp_path, receiver, "--key", "k", "--once", stop_at=point)
    assert done.returncode == -signal.SIGKILL, done.stderr
    done = _dbt_dd(tmp_path, receiver, "--key", "k", "--once")
    assert done.returncode == 0, done.stderr
    refused = {id for id, status, _, _ in receiver.requests if status == 422} - set(receiver.ids)
    assert set(_in_file(stored, sink)) == refused
    assert len(sink.rejected.read_text().splitlines()) > len(refused), "what was sent twice is there twice"
    receiver.answer = lambda event: 200
    assert resend(stored.collection, sink) == Resent(len(refused), 0)
    assert sink.rejected.read_bytes() == b""


def test_a_line_that_was_written_in_part_is_no_change(tmp_path: Path, receiver: Receiver) -> None:
    stored, sink = _rejected_all(tmp_path, receiver, 3)
    whole = sink.rejected.read_bytes()
    last = len(whole.rpartition(b"\n")[0].rpartition(b"\n")[0]) + 1
    body = json.dumps({"collection": "m.kept", "time": 2, "key": {"k": 9}}).encode()
    for end in range(last, len(whole)):
        sink.rejected.write_bytes(whole[:end])
        is_whole = end == len(whole) - 1
        assert len(_in_file(stored, sink)) == 2 + is_whole
        RejectedFile(sink.rejected, "m.kept", sink).append([(Event("new", body), "status 400")])
        assert len(_in_file(stored, sink)) == 3 + is_whole
        assert all(json.loads(line) for line in sink.rejected.read_text().splitlines())
    sink.rejected.write_bytes(b"not one\n" + whole)
    count = len(receiver.requests)
    with pytest.raises(SinkError, match=r"rejected\.jsonl, line 1: it is no rejected change"):
        resend(stored.collection, sink)
    assert len(receiver.requests) == count and sink.rejected.read_bytes() == b"not one\n" + whole


def test_a_publisher_that_follows_and_resends_side_by_side_lose_nothing(tmp_path: Path, receiver: Receiver) -> None:
    stored, sink = _rejected_all(tmp_path, receiver, 30)
    failing, ended = random.Random(5), threading.Event()
    receiver.answer = lambda event: 422 if failing.random() < 0.5 else 200
    publisher = threading.Thread(target=publish, args=(stored.collection, sink), kwargs={"ended": ended})
    publisher.start()
    rows, chance, processes = dict.fromkeys(range(30), "a"), random.Random(6), []
    for step in range(8):
        rows = rounds(stored, chance, 2 + 3 * step, 3, rows)
        if step % 2 == 0:
            processes.append(_dbt_dd(tmp_path, receiver, "--resend"))
    until(lambda: {(event["time"], event["key"]["k"]) for _, _, _, event in receiver.requests} == _changed(stored))
    ended.set()
    publisher.join()
    assert all(done.returncode in (0, 1) for done in processes), [done.stderr for done in processes]
    assert _in_file(stored, sink).keys() == _waiting(receiver).keys()
    receiver.answer = lambda event: 200
    resend(stored.collection, sink)
    assert {(event["time"], event["key"]["k"]) for event in receiver.taken} == _changed(stored)
    assert _state(receiver) == rows


def _changed(stored: Stored) -> set[tuple[int, int]]:
    changed = stored.collection.changes()
    return set(zip(changed["dd_time"].to_pylist(), changed["k"].to_pylist(), strict=True))


def test_lines_that_come_while_others_are_taken_out_stay(tmp_path: Path, receiver: Receiver) -> None:
    path, sink = tmp_path / "rejected.jsonl", sink_to(receiver)
    appended, taken, ended = set[str](), set[str](), threading.Event()

    def append(part: int) -> None:
        for number in itertools.takewhile(lambda _: not ended.is_set(), itertools.count()):
            body = json.dumps({"collection": "m.kept", "time": number, "key": {"k": part}}).encode()
            RejectedFile(path, "m.kept", sink).append([(Event(f"{part}-{number}", body), "status 400")])
            appended.add(f"{part}-{number}")

    writers = [threading.Thread(target=append, args=(part,)) for part in range(2)]
    for writer in writers:
        writer.start()
    file = RejectedFile(path, "m.kept", sink)
    try:
        while len(taken) < 45:
            some = {one.event.id for one in file.read()[:3]}
            file.settle(some, {})
            taken |= some
    finally:
        ended.set()
        for writer in writers:
            writer.join()
    left = {one.event.id for one in file.read()}
    assert taken | left == appended and not taken & left


def test_one_resends_at_a_time(tmp_path: Path, receiver: Receiver) -> None:
    stored, sink = _rejected_all(tmp_path, receiver, 3)
    with (
        RejectedFile(sink.rejected, "m.kept", sink).resending(),
        pytest.raises(SinkError, match=rf"process {os.getpid()} is resending the changes in .*rejected\.jsonl"),
    ):
        resend(stored.collection, sink)
    assert resend(stored.collection, sink) == Resent(0, 3)


def test_publications_may_share_a_file(tmp_path: Path, receiver: Receiver) -> None:
    stored, sink = _rejected_all(tmp_path, receiver, 3)
    other, elsewhere = Stored(tmp_path / "state", name="m.other"), replace(sink, url=f"{receiver.url}/other")
    other.commit({1: Counter({(7, "x"): 1})}, 2)
    publish(other.collection, sink, once=True)
    publish(stored.collection, elsewhere, once=True)
    receiver.answer = lambda event: 200
    assert resend(other.collection, sink) == Resent(1, 0)
    assert [event["collection"] for event in receiver.taken] == ["m.other"]
    assert len(rejected(stored.collection, sink)) == len(rejected(stored.collection, elsewhere)) == 3
    assert resend(stored.collection, elsewhere) == Resent(3, 0)
    assert len(rejected(stored.collection, sink)) == 3


def test_mistakes_and_a_file_that_is_not_there(tmp_path: Path, receiver: Receiver) -> None:
    stored = Stored(tmp_path / "state")
    with pytest.raises(ConfigError, match=r"m\.kept: no file is named for changes that 127\.0\.0\.1:\d+ rejects"):
        resend(stored.collection, sink_to(receiver))
    assert resend(stored.collection, sink_to(receiver, rejected=tmp_path / "none.jsonl")) == Resent(0, 0)
    with pytest.raises(SinkError, match=r"rejected changes cannot be kept in .*/missing/r\.jsonl"):
        resend(stored.collection, sink_to(receiver, rejected=tmp_path / "missing/r.jsonl"))
