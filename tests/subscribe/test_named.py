"""Subscriptions with a name go on where they were, without loss or repeat, and keep their history while away."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.subscribe.subscription import Subscription
from dbt_incremental_dd.trace.holds import holds
from tests.subscribe.stored import Stored, rows_of


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    made = Stored(tmp_path)
    made.commit({10: Counter({(1, "a"): 1})}, 11)
    return made


def named(stored: Stored, name: str = "a page") -> Subscription:
    return stored.collection.subscribe(name=name)


def test_it_goes_on_where_it_was_closed(stored: Stored) -> None:
    with named(stored) as first:
        batch = first.poll()
        assert batch and batch.after is None and batch.updates.num_rows == 1
    stored.commit({20: Counter({(2, "b"): 1})}, 21)
    with named(stored) as second:
        batch = second.poll()
        assert batch and batch.after == 10 and rows_of(batch.updates) == {(2, "b"): 1}
        assert second.poll() is None
    with named(stored, "another") as third:
        batch = third.poll()
        assert batch and batch.after is None and batch.updates.num_rows == 2


def test_a_batch_that_was_not_dealt_with_comes_again(stored: Stored) -> None:
    with pytest.raises(RuntimeError), named(stored) as first:
        first.poll()
        raise RuntimeError("the snapshot cannot be dealt with")
    with named(stored) as second:
        batch = second.poll()
        assert batch and batch.after is None
    stored.commit({20: Counter({(2, "b"): 1})}, 21)
    for batch in named(stored):
        assert batch.after == 10
        break
    for batch in named(stored):
        assert batch.after == 10
        break


def test_history_is_kept_while_it_is_away(stored: Stored) -> None:
    with named(stored) as first:
        first.poll()
    held = holds(stored.place.storage)["m.kept"]
    assert [(hold.at, hold.by) for hold in held] == [(10, "subscription a page")]
    named(stored).forget()
    assert holds(stored.place.storage) == {}


def test_before_its_snapshot_is_dealt_with_it_holds_as_one_without_a_name(stored: Stored) -> None:
    first = named(stored)
    first.poll()
    (hold,) = holds(stored.place.storage)["m.kept"]
    assert hold.at == 10 and "process" in hold.by
    first.close()
    (hold,) = holds(stored.place.storage)["m.kept"]
    assert hold.by == "subscription a page"


def test_an_empty_name_is_refused(stored: Stored) -> None:
    with pytest.raises(ConfigError, match="name is empty"):
        named(stored, " ")
