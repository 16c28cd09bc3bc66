"""Filters, projections and keys: what a subscriber gets of the changes adds up to the same of the contents."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_incremental_dd.core.errors import ConfigError, QueryError
from dbt_incremental_dd.subscribe.selection import Selection
from dbt_incremental_dd.subscribe.shape import Shape
from dbt_incremental_dd.subscribe.subscription import Batch, Start, Subscription
from tests.subscribe.stored import Rows, Stored
from tests.subscribe.test_subscription import STEPS, write

UPDATES = pa.table(
    {"k": [1, 1, 2, 2], "v": ["a", "b", None, "c"], "dd_time": [5, 5, 6, 7], "dd_diff": [1, -1, 2, 1]},
    pa.schema([("k", pa.int64()), ("v", pa.string()), ("dd_time", pa.int64()), ("dd_diff", pa.int64())]),
)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT * FROM m.kept WHERE k = 1", [(1, "a", 5, 1), (1, "b", 5, -1)]),
        ("select k from kept", [(2, 6, 2), (2, 7, 1)]),
        ("select kept.k * 10 as n, upper(v) from m.kept where v is not null and k > 1", [(20, "C", 7, 1)]),
        ("select x.*, 'c' || k from m.kept as x where x.v = 'c'", [(2, "c", "c2", 7, 1)]),
        ('select "k" as "a ""b" from kept where k = 2', [(2, 6, 2), (2, 7, 1)]),
        ("select k from kept where false", []),
    ],
)
def test_selections(sql: str, found: list[tuple[Any, ...]]) -> None:
    selection = Selection(sql)
    assert selection.collection in ("m.kept", "kept")
    got = [tuple(row.values()) for row in selection.apply(UPDATES).to_pylist()]
    assert sorted(got, key=str) == sorted(found, key=str)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select count(*) from kept", "aggregates"),
        ("select row_number() over (order by k) from kept", "windows"),
        ("select k from kept where k in (select 1)", "subqueries"),
        ("select distinct k from kept", "distinct"),
        ("select k from kept group by k", "group"),
        ("select k from kept order by k", "order"),
        ("select k from kept limit 1", "limit"),
        ("select k from kept join other using (k)", "joins"),
        ("select k from kept, other", "joins"),
        ("with x as (select 1) select k from kept", "with"),
        ("select k from kept union all select 1", "not one SELECT"),
        ("select k from kept; select 1", "not one SELECT"),
        ("select random() from kept", "random is not the same"),
        ("select k from kept where v < now()", "now is not the same"),
        ("select current_date from kept", "current_date is not the same"),
        ("select 1", "one collection"),
        ("select * from read_csv('/etc/hosts')", "one collection"),
        ("delete from kept", "not one SELECT"),
        ("select k from kept where (", "cannot be read"),
        ("", "not one SELECT"),
    ],
)
def test_what_is_no_filter_and_projection_is_refused(sql: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        Selection(sql)


def test_a_selection_that_cannot_be_computed(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="nosuch"):
        Selection("select nosuch from kept").apply(UPDATES)
    stored = Stored(tmp_path)
    stored.commit({10: Counter({(1, "a"): 1})}, 11)
    with pytest.raises(ConfigError, match=r"m\.kept cannot SELECT from m\.other"):
        stored.collection.subscribe(select="select k from m.other")
    assert next(iter(stored.collection.subscribe(select="select v from kept"))).updates["v"].to_pylist() == ["a"]


@settings(max_examples=25)
@given(STEPS, st.data())
def test_selected_changes_add_up(
    steps: list[list[tuple[int, list[tuple[int, str | None]], int]]], data: st.DataObject
) -> None:
    shape = Shape(Selection("select k % 2 as odd, coalesce(v, '-') as w from kept where k > 0"))
    with tempfile.TemporaryDirectory() as folder:
        stored, held, upper = Stored(Path(folder)), Counter(), 10
        stored.commit({}, upper)
        followed, has = Subscription(stored.place, shape=shape), Counter()
        for step in steps:
            upper = write(stored, held, step, upper)
            at_once = data.draw(st.booleans(), "at once")
            for batch in filter(None, [followed.poll(at_once=at_once), followed.poll(at_once=at_once)]):
                for row in batch.updates.to_pylist():
                    has[row["odd"], row["w"]] += row["dd_diff"]
        wanted: Counter[tuple[int, str]] = Counter()
        for (k, v), count in held.items():
            wanted[k % 2, v or "-"] += count if k > 0 else 0
        assert +has == +wanted and min(has.values(), default=0) >= 0


def batches(stored: Stored, as_of: int, at_once: bool = False) -> list[Batch]:
    followed = Subscription(stored.place, Start(as_of=as_of), Shape(key=("K",)))
    return [batch for batch in (followed.poll(), followed.poll(at_once=at_once)) if batch]


def test_what_becomes_of_keys(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.commit({10: Counter({(1, "a"): 1, (2, "b"): 1, (3, "c"): 2})}, 11)
    stored.commit({20: Counter({(1, "a"): -1, (1, "x"): 1, (2, "b"): -1, (4, None): 1})}, 21)
    stored.commit({30: Counter({(4, None): -1, (4, "n"): 1, (2, "y"): 1, (3, "c"): -1})}, 31)
    told = [{tuple(row.values()) for row in b.updates.to_pylist()} for b in batches(stored, 10)]
    assert told == [
        {(1, "a", 10, "upsert"), (2, "b", 10, "upsert"), (3, None, 10, "key_violation")},
        {
            (1, "x", 20, "upsert"),
            (2, None, 20, "delete"),
            (2, "y", 30, "upsert"),
            (3, None, 30, "delete"),
            (4, "n", 30, "upsert"),
            (4, None, 20, "upsert"),
        },
    ]
    late = [tuple(row.values()) for row in batches(stored, 10, at_once=True)[1].updates.to_pylist()]
    assert sorted(late) == [
        (1, "x", 30, "upsert"), (2, "y", 30, "upsert"), (3, None, 30, "delete"), (4, "n", 30, "upsert"),
    ]  # fmt: skip


KEYED = st.dictionaries(st.integers(0, 3), st.sampled_from(["a", "b", None]))


@settings(max_examples=40)
@given(st.lists(st.lists(KEYED, max_size=3), max_size=6), st.data())
def test_keys_add_up(steps: list[list[dict[int, str | None]]], data: st.DataObject) -> None:
    """A client that puts and removes by key has the contents."""
    with tempfile.TemporaryDirectory() as folder:
        stored, upper = Stored(Path(folder)), 10
        stored.commit({}, upper)
        followed = Subscription(stored.place, shape=Shape(key=("k",)))
        held: dict[int, str | None] = {}
        has: dict[int, str | None] = {}
        for step in steps:
            changes: dict[int, Rows] = {}
            for number, wanted in enumerate(step):
                change: Rows = Counter(dict.fromkeys(wanted.items(), 1))
                change.subtract(held.items())
                changes[upper + number], held = change, wanted
            upper += len(step)
            stored.commit(changes, upper)
            at_once = data.draw(st.booleans(), "at once")
            for batch in filter(None, [followed.poll(at_once=at_once), followed.poll(at_once=at_once)]):
                for row in batch.updates.to_pylist():
                    assert row["dd_state"] != "key_violation"
                    if row["dd_state"] == "upsert":
                        has[row["k"]] = row["v"]
                    else:
                        del has[row["k"]]
        assert has == held


def test_a_key_that_is_no_column(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.commit({10: Counter({(1, "a"): 1})}, 11)
    with pytest.raises(ConfigError, match="no column nosuch"):
        Subscription(stored.place, shape=Shape(key=("nosuch",))).poll()
