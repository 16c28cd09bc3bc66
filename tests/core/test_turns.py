"""CI leaves no long test out for good."""

from __future__ import annotations

import re
from pathlib import Path

from tests.turns import LONG_SECONDS, LONG_TESTS, PARTS, long_tests, of_other_turns

_ROOT = Path(__file__).parents[2]


def test_each_is_run_in_one_turn() -> None:
    """Others in each; and all turns take about as long."""
    seconds, short = long_tests(), "tests/core/test_turns.py::test_each_is_run_in_one_turn"
    names = [*sorted(seconds), short]
    run = [set(names) - of_other_turns(names, seconds, turn) for turn in range(PARTS)]
    assert set.intersection(*run) == {short}
    assert set.union(*run) == set(names) and sum(map(len, run)) == len(names) + PARTS - 1
    taken = [sum(seconds.get(name, 0.0) for name in part) for part in run]
    assert max(taken) - min(taken) <= max(seconds.values())


def test_the_long_ones_are_there() -> None:
    found = long_tests()
    assert min(found.values()) >= LONG_SECONDS
    for name in found:
        path, first, *_ = re.sub(r"\[.*", "", name, flags=re.DOTALL).split("::")
        text = (_ROOT / path).read_text()
        assert f"def {first}(" in text or f"class {first}(" in text, f"{LONG_TESTS.name}: {name}"
