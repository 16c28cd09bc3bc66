"""Clients that retry, servers that are killed, intakes that fail, files that move: each request counts exactly once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from dbt_incremental_dd.runtime.vacuum import vacuum
from dbt_incremental_dd.serve.server import bind
from dbt_incremental_dd.sources.connectors.http import connector
from dbt_incremental_dd.sources.intake import take_in
from dbt_incremental_dd.storage import created
from tests.observe.no_session import no_session
from tests.serve.events.sources import EventSource, send
from tests.serve.serving import serving

DAY = 86_400_000


class Killed(BaseException):
    """The process has ended here."""


class Servers:
    """A server in a process of its own, which is killed and started again on the same port."""

    def __init__(self, root: Path) -> None:
        bound = bind("127.0.0.1", 0)
        self.port = bound.getsockname()[1]
        bound.close()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "dbt_incremental_dd.cli", "--state-root", str(root), "serve"]
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [*self._command, "--port", str(self.port)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        """Ends it by SIGKILL."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def again(self) -> None:
        """Kills it, and starts another one."""
        self.kill()
        self._process = self._started()


def test_clients_retry_while_servers_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers over one state root, one of which is killed and started again; intakes go on all the time, and move files."""
    monkeypatch.setattr(connector, "_MOST_FILES", 3)
    source, servers = EventSource(tmp_path), Servers(tmp_path)
    sent: Counter[tuple[Any, ...]] = Counter()
    lost, taken, guard = [0], [0], threading.Lock()
    stop = threading.Event()

    def client(seed: int) -> None:
        chance = random.Random(seed)
        for number in range(15):
            events = [{"id": chance.randrange(5), "v": chance.choice("ab")} for _ in range(chance.randint(1, 3))]
            urls = [servers.url, steady.url]
            chance.shuffle(urls)
            answers = 0
            # Some go on sending what was accepted already, as a client whose answer was lost.
            while answers < 1 or chance.random() < 0.3:
                urls.reverse()
                try:
                    answer = send(urls[0], events, f"{seed}-{number}")
                except httpx.TransportError:
                    lost[0] += 1
                    continue
                assert answer.status_code == 202, answer.text
                answers += 1
            with guard:
                sent.update((one["id"], one["v"]) for one in events)

    def intakes() -> None:
        while not stop.is_set():
            taken[0] += source.take().rows > 0
            time.sleep(0.02)

    try:
        with serving(tmp_path) as steady, ThreadPoolExecutor(10) as pool:
            wait_for(servers.url)
            reading = pool.submit(intakes)
            clients = [pool.submit(client, seed) for seed in range(8)]
            time.sleep(0.3)
            servers.again()
            try:
                for one in clients:
                    one.result(60)
            finally:
                stop.set()
            reading.result(60)
    finally:
        servers.kill()
    source.take()
    assert source.rows() == sent
    assert lost[0] > 0 and taken[0] > 1 and created.sizes(source.inbox.taken, {})


def wait_for(url: str) -> None:
    """Until the server answers."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/collections", trust_env=False)
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the server has not started")


def test_an_intake_that_is_killed_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random requests, some of them again, and intakes that end at random steps of the inbox's."""
    monkeypatch.setattr(connector, "_MOST_FILES", 1)
    chance = random.Random(7)
    source = EventSource(tmp_path)
    requests: dict[str, list[dict[str, Any]]] = {}
    killed = 0
    for step in range(60):
        for _ in range(chance.randrange(3)):
            key = str(chance.randrange(40))
            is_new = key not in requests
            events = requests.setdefault(key, [{"id": step, "v": key}])
            assert source.inbox.accept(key, lines(events))
            assert is_new or not source.inbox.accept(key, lines([*events, *events]))
        with monkeypatch.context() as patched:
            if chance.random() < 0.6:
                module = chance.choice([created, os])
                name = "move" if module is created else chance.choice(["link", "utime", "unlink"])
                patched.setattr(module, name, dying(chance.randrange(3), getattr(module, name)))
            try:
                source.take()
            except Killed:
                killed += 1
    source.take()
    assert killed > 5
    assert source.rows() == Counter((one["id"], one["v"]) for events in requests.values() for one in events)


def lines(events: list[dict[str, Any]]) -> bytes:
    return "".join(f'{{"id": {one["id"]}, "v": "{one["v"]}"}}\n' for one in events).encode()


def dying(calls: int, call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, which is the process's last one after so many."""
    left = [calls]

    def made(*given: Any, **options: Any) -> Any:
        left[0] -= 1
        # Only what the inbox does is of interest here.
        if left[0] < 0 and "inbox" in str(given[0]):
            raise Killed
        return call(*given, **options)

    return made


@pytest.mark.parametrize("again", [b'{"id": 1}\n', b'{"id": 2}\n'], ids=["same", "other"])
def test_the_file_moves_between_the_two_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bytes) -> None:
    """The key comes again just as the file that it made is moved: after the first look, before the second."""
    source = EventSource(tmp_path)
    assert source.inbox.accept("k", b'{"id": 1}\n')
    source.take()
    create = created.create

    def late(*given: Any) -> bool:
        source.inbox.put_away(list(source.inbox.waiting()))
        return create(*given)

    with monkeypatch.context() as patched:
        patched.setattr(created, "create", late)
        assert source.inbox.accept("k", again) == (again == b'{"id": 1}\n')
    assert not source.inbox.waiting()
    assert source.take().rows == 0 and source.rows() == {(1, None): 1}
    # A server that is killed before its second look leaves its file, which does not count.
    created.create(f"{source.inbox.new}/{next(iter(created.sizes(source.inbox.taken, {})))}", again, {})
    assert source.take().rows == 0 and source.rows() == {(1, None): 1} and not source.inbox.waiting()


def test_vacuum_forgets_keys_after_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "_MOST_FILES", 0)
    source = EventSource(tmp_path, remember_keys="2 days")
    for key in "ab":
        assert source.inbox.accept(key, b'{"id": 1}\n')
        source.take()
    old, young = sorted(created.sizes(source.inbox.taken, {}))
    age(f"{source.inbox.taken}/{old}", 2.1)
    age(f"{source.inbox.taken}/{young}", 1.9)
    assert source.inbox.accept("waits", b'{"id": 2}\n')
    (waits,) = source.inbox.waiting()
    age(f"{source.inbox.new}/{waits}", 30)
    for _ in vacuum(source.storage, older_than=0):
        pass
    assert list(created.sizes(source.inbox.taken, {})) == [young]
    assert list(source.inbox.waiting()) == [waits]
    assert [source.inbox.accept(key, b'{"id": 3}\n') for key in "ab"].count(True) == 1
    source.take()
    assert source.rows() == {(1, None): 2, (2, None): 1, (3, None): 1}


def age(path: str, days: float) -> None:
    moment = time.time() - days * DAY / 1000
    os.utime(path, (moment, moment))


def test_a_key_that_was_forgotten_counts_again(tmp_path: Path) -> None:
    """Also if it is among what the last intake has read."""
    source = EventSource(tmp_path)
    assert source.inbox.accept("k", b'{"id": 1}\n')
    source.take()
    source.inbox.put_away(list(source.inbox.waiting()))
    created.remove(source.inbox.taken, list(created.sizes(source.inbox.taken, {})), {})
    time.sleep(0.01)
    assert source.inbox.accept("k", b'{"id": 1}\n')
    source.take()
    assert source.rows() == {(1, None): 2}


def test_a_failed_intake_keeps_everything(tmp_path: Path) -> None:
    source = EventSource(tmp_path)
    assert source.inbox.accept("k", b'{"id": "no number"}\n')
    with pytest.raises(AssertionError, match="a session is opened"):  # Spark tells what does not fit
        take_in(no_session(), source.storage, source.spec, 200, print)
    assert len(source.inbox.waiting()) == 1
