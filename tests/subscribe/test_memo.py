"""What is kept is bounded, and made once for all who want it at a time."""

from __future__ import annotations

import threading
import time

from dbt_incremental_dd.subscribe.memo import Memo


def test_it_is_bounded_by_bytes_and_by_number() -> None:
    memo = Memo(10_000_000)
    for number in range(1_000):
        assert memo.get(number, lambda number=number: number, lambda _: 100_000) == number  # type: ignore[misc]
    assert memo.bytes <= 10_000_000
    assert memo.get("large", lambda: "large", lambda _: 20_000_000) == "large" and memo.bytes <= 10_000_000
    small = Memo(10_000_000)
    for number in range(1_000):
        small.get(number, lambda: "", lambda _: 0)
    made: list[int] = []
    for number in range(1_000):
        small.get(number, lambda number=number: made.append(number), lambda _: 0)  # type: ignore[misc]
    assert len(made) >= 800


def test_the_last_ones_are_kept() -> None:
    memo, made = Memo(1_000_000), []
    for key in ("a", "b", "a", "b", "a"):
        memo.get(key, lambda key=key: made.append(key), lambda _: 10)  # type: ignore[misc]
    assert made == ["a", "b"]


def test_who_asks_meanwhile_waits_and_an_error_is_not_kept() -> None:
    memo, made, found = Memo(1_000_000), [], []

    def make() -> int:
        time.sleep(0.1)
        made.append(1)
        if len(made) == 1:
            raise OSError("not this time")
        return len(made)

    def ask() -> None:
        try:
            found.append(memo.get("x", make, lambda _: 1))
        except OSError:
            found.append(0)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 2, 2, 2, 2] and len(made) == 2
