"""Two tables of many types whose rows come and go at random."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

from tests.oracle import World

A = "k INT, v BIGINT, d DECIMAL(12,2), s STRING, f DOUBLE, ts TIMESTAMP, arr ARRAY<INT>"
B = "k INT, w STRING, p DATE"


def row_a(rng: random.Random) -> tuple[Any, ...]:
    """A row with NULLs, and values that often repeat."""
    day = datetime.datetime(2020, 1, rng.randint(1, 3), rng.choice([0, 12]))
    return (
        rng.choice([1, 2, 3, 4, None]),
        rng.choice([1, 2, 5, 9, None]),
        rng.choice([Decimal("1.25"), Decimal("-3.10"), Decimal("0.00"), None]),
        rng.choice(["x", "y", "z", "", None]),
        rng.choice([0.5, 1.25, -2.0, float("nan"), 0.0, -0.0, None]),
        rng.choice([day, None]),
        rng.choice([[1, 2], [], [3], None]),
    )


def row_b(rng: random.Random) -> tuple[Any, ...]:
    """A row of the smaller table."""
    return (rng.choice([1, 2, 3, 7, None]), rng.choice(["p", "q", "x"]), datetime.date(2020, 1, rng.randint(1, 2)))


def shuffle(world: World, rng: random.Random, inserts: int = 6, deletes: int = 4) -> None:
    """Inserts and deletes some rows of either table, sometimes of neither."""
    for name, make in (("a", row_a), ("b", row_b)):
        if rng.random() < 0.25:
            continue
        world.insert(name, [make(rng) for _ in range(rng.randint(0, inserts))])
        rows = world.tables[name].rows
        gone = rng.sample(range(len(rows)), min(len(rows), rng.randint(0, deletes)))
        world.delete(name, [rows[i] for i in gone])
