"""Sending beside the run."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from dbt_incremental_dd.observe.background import Background, NotSent


def test_too_many_are_dropped() -> None:
    one, begun, gate, sent = Background(most=3), threading.Event(), threading.Event(), list[int]()
    one.send(lambda: begun.set() or gate.wait())  # type: ignore[func-returns-value]
    assert begun.wait(5)
    for number in range(5):
        one.send(partial(sent.append, number))
    with pytest.raises(NotSent, match="more than 3 sendings"):
        one.settle(0.05)
    started = time.monotonic()
    with pytest.raises(NotSent, match="no answer"):
        one.settle(5)
    assert time.monotonic() - started < 1, "it was in vain a moment ago"
    gate.set()
    until = time.monotonic() + 5
    while sent != [0, 1, 2] and time.monotonic() < until:
        time.sleep(0.01)
    one.settle(5)
    assert sent == [0, 1, 2]


def test_one_that_owes_an_answer_for_long_is_not_waited_for() -> None:
    """An idle time before counts for nothing."""
    one, gate = Background(), threading.Event()
    one.send(lambda: None)
    time.sleep(0.3)
    one.send(lambda: time.sleep(0.1))
    one.settle(0.25)
    one.send(gate.wait)
    time.sleep(0.3)
    started = time.monotonic()
    with pytest.raises(NotSent, match="no answer"):
        one.settle(0.25)
    assert time.monotonic() - started < 0.2
    gate.set()


def test_what_fails_is_told_once_and_keeps_nothing_back() -> None:
    one, sent = Background(), list[int]()
    for number in range(4):
        one.send(lambda number=number: sent.append(10 // (number - 1)))  # type: ignore[misc]
    with pytest.raises(NotSent, match="ZeroDivisionError"):
        one.settle(5)
    one.settle(5)
    assert sent == [-10, 10, 5]


def test_threads_share_it() -> None:
    """Each thread's sendings stay in their order."""
    one, sent = Background(most=10_000), list[tuple[int, int]]()

    def give(thread: int) -> None:
        for number in range(200):
            one.send(partial(sent.append, (thread, number)))

    threads = [threading.Thread(target=give, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one.settle(5)
    assert [[n for of, n in sent if of == thread] for thread in range(4)] == [list(range(200))] * 4
