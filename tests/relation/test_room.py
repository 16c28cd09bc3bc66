"""Plans that read everything share the driver's room."""

from __future__ import annotations

import math
import threading

import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import INTEGER, VARIANT
from dbt_incremental_dd.relation import room
from dbt_incremental_dd.relation.room import FOR_PLANS, table_bytes


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """800 bytes: 100 for one plan, 200 for all."""
    monkeypatch.setattr(room, "machine_memory", lambda: 800)


def test_a_plan_that_reads_too_much_gets_none() -> None:
    with FOR_PLANS.taking(101) as has_room:
        assert not has_room
    with FOR_PLANS.taking(100) as has_room:
        assert has_room


def test_what_is_no_number_gets_none() -> None:
    """Nobody would ever have room for it."""
    with FOR_PLANS.taking(math.nan) as has_room:
        assert not has_room


def test_no_rows_take_no_room() -> None:
    nested = Schema((Column("tags", VARIANT),))
    assert table_bytes(0, nested) == 0
    assert table_bytes(1, nested) == math.inf
    assert table_bytes(3, Schema((Column("id", INTEGER),))) == 12


def test_one_waits_until_others_have_left() -> None:
    began, entered, leave = threading.Event(), threading.Event(), threading.Event()

    def third() -> None:
        began.set()
        with FOR_PLANS.taking(1) as has_room:
            assert has_room
            entered.set()
            leave.wait(10)

    waiting = threading.Thread(target=third)
    with FOR_PLANS.taking(100), FOR_PLANS.taking(100):
        waiting.start()
        assert began.wait(10)
        assert not entered.wait(0.1)
    assert entered.wait(10)
    leave.set()
    waiting.join(10)


def test_room_is_left_when_a_plan_fails() -> None:
    for _ in range(3):
        with pytest.raises(ValueError, match="x"), FOR_PLANS.taking(100):
            raise ValueError("x")
    with FOR_PLANS.taking(100) as has_room:
        assert has_room
