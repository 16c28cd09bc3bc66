"""What the script is made of: seeds that are scaled and changed, and the run's time in a table's query."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest

from tests.projects.seeds import Seed, change, scale


def _seeds() -> tuple[Seed, Seed, Seed]:
    users = Seed(Path("users.csv"), ["id", "name"], [[str(n), f"user {n}"] for n in range(1, 6)])
    days = [f"2024-02-0{n} 10:00:00" for n in range(1, 10)]
    orders = Seed(
        Path("orders.csv"), ["id", "user_id", "at"], [[f"o{n}", str(n % 6 or ""), d] for n, d in enumerate(days)]
    )
    lookup = Seed(Path("lookup.csv"), ["word", "meaning"], [["a", "one"], ["a", "two"]])
    return users, orders, lookup


def test_scaled_rows_refer_to_each_other() -> None:
    users, orders, lookup = _seeds()
    scale([users, orders, lookup], 100)
    assert len(orders.rows) == 108 and len(users.rows) == 60 and len(lookup.rows) == 2
    assert len({row[0] for row in orders.rows}) == 108 and len({row[2] for row in orders.rows}) == 108
    known = {row[0] for row in users.rows}
    assert all(row[1] in known for row in orders.rows if row[1])
    assert set(Counter(row[1] for row in orders.rows if row[1]).values()) == {1, 2}


def test_without_rows_nothing_is_scaled() -> None:
    seeds = _seeds()
    scale(seeds, 0)
    assert [len(seed.rows) for seed in seeds] == [5, 9, 2]


def test_changes_are_of_each_kind_and_keep_keys() -> None:
    _, orders, _ = _seeds()
    before = {row[0]: row for row in orders.rows}
    change(orders, random.Random(1), part=0.3)
    after = {row[0]: row for row in orders.rows}
    assert len(after) == len(orders.rows)
    assert before.keys() - after.keys() and after.keys() - before.keys()
    assert any(before[key] != after[key] for key in before.keys() & after.keys())
    again = _seeds()[1]
    change(again, random.Random(1), part=0.3)
    assert again.rows == orders.rows


def test_changes_keep_the_types_of_columns() -> None:
    """Of each column only one row says what it is."""
    rows = [["1", "a", "1.5", "2024-01-01 10:00:00", "true"], *([str(n), "", "2", "", ""] for n in range(2, 6))]
    for number in range(20):
        seed = Seed(Path("few.csv"), ["id", "word", "price", "at", "is_on"], [list(row) for row in rows])
        before = seed.types()
        for _ in range(5):
            change(seed, random.Random(number), part=0.5)
            assert seed.types() == before
            assert len({row[0] for row in seed.rows}) == len(seed.rows)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select now(), NOW ( )", "select T, T"),
        ("select current_timestamp, current_timestamp() as a", "select T, T as a"),
        ("select a.current_date, `now`() , t.now()", "select a.current_date, `now`() , t.now()"),
        ("select current_date as current_date", "select date(T) as current_date"),
        ("select 'now()', 'it''s now()', \"now()\" -- now()\n, /* now() */ now()", None),
        ("select known(), current_dates, unix_timestamp(), unix_timestamp(x)", None),
    ],
)
def test_the_run_s_time_in_a_query(sql: str, expected: str | None) -> None:
    if expected is None:
        expected = re.sub(r"now\(\)$", "T", sql).replace("unix_timestamp()", "unix_timestamp(T)")
    source = Path(__file__).with_name("run_time.sql").read_text()
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    adapter = SimpleNamespace(differential_now=lambda given: "T")
    names = {"adapter": adapter, "modules": SimpleNamespace(re=re), "var": lambda *_: None, "none": None}
    template = environment.from_string(source + "{{ at_run_time(sql) }}", {**names, "return": lambda found: found})
    assert template.render(sql=sql).strip() == expected.strip()
