"""Changes of one time as messages."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.sinks.events import KeyedMessage, messages
from dbt_incremental_dd.sinks.following import options_of


def updates(*rows: tuple[Any, Any, int]) -> pa.Table:
    ids, values, diffs = zip(*rows, strict=True)
    columns = {"id": pa.array(ids, pa.int64()), "v": values, "dd_time": [7] * len(rows)}
    return pa.table({**columns, "dd_diff": diffs})


CHANGES = updates((1, "a", -1), (1, "b", 1), (2, "c", 1), (3, "d", -1))


def test_upsert() -> None:
    expected = [(b'{"id":1}', b'{"id":1,"v":"b"}'), (b'{"id":2}', b'{"id":2,"v":"c"}'), (b'{"id":3}', None)]
    assert messages("s.t", CHANGES, 7, ("id",), "upsert", is_first=False) == [KeyedMessage(*one) for one in expected]


def test_debezium() -> None:
    """A delete is followed by a tombstone."""
    found = messages("s.t", CHANGES, 7, ("id",), "debezium", is_first=False)
    events = [json.loads(one.value) for one in found if one.value is not None]
    assert [(e["op"], e["before"], e["after"]) for e in events] == [
        ("u", {"id": 1, "v": "a"}, {"id": 1, "v": "b"}),
        ("c", None, {"id": 2, "v": "c"}),
        ("d", {"id": 3, "v": "d"}, None),
    ]
    assert {e["source"]["lsn"] for e in events} == {7} and found[-1] == KeyedMessage(b'{"id":3}', None)
    (first,) = messages("s.t", updates((1, "a", 1)), 7, ("id",), "debezium", is_first=True)
    assert json.loads(first.value or b"")["op"] == "r"


@pytest.mark.parametrize("rows", [[(1, "a", 1), (1, "b", 1)], [(1, "a", 2)], [(1, "a", -2), (1, "b", 1)]])
def test_keys_of_several_rows_are_refused(rows: list[tuple[Any, Any, int]]) -> None:
    with pytest.raises(ConfigError, match=r"s.t: key id = 1 has several rows"):
        messages("s.t", updates(*rows), 7, ("id",), "upsert", is_first=False)


def test_keys_that_are_null_are_refused() -> None:
    with pytest.raises(ConfigError, match="column id of the key is NULL"):
        messages("s.t", updates((None, "a", 1)), 7, ("id",), "upsert", is_first=False)


def test_options() -> None:
    assert options_of(["bootstrap.servers=a:1", "x=y=z"]) == {"bootstrap.servers": "a:1", "x": "y=z"}
    with pytest.raises(ConfigError, match="NAME=VALUE, not no"):
        options_of(["a=b", "no"])
