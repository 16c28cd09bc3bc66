"""Collections of any name are stored, and found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import Storage

SCHEMA = Schema((Column("x", LONG), TIME_COLUMN, DIFF_COLUMN))


@pytest.mark.parametrize("name", ["a.b", "a.ü x", 'a."q"', "a.50%", "a.b/../c", "a.b%2fc", "a.~2f", "a.{b}*?[c]"])
def test_any_name_is_one_folder(tmp_path: Path, name: str) -> None:
    storage = Storage(str(tmp_path / "state root"))
    place = storage.collection(name)
    made = place.create(SCHEMA).commit(Commit(upper=5))
    found = place.log()
    assert found is not None
    assert found.version == made.version
    assert found.frontiers.upper == 5
    assert [other.name for other in storage.collections()] == [name]
    assert place.inner(name).create(SCHEMA).version == 0
    assert [path.name for path in (tmp_path / "state root" / "collections").iterdir()] == [place.folder]


def test_a_log_is_known_only_as_long_as_it_is_the_same(tmp_path: Path) -> None:
    place = Storage(str(tmp_path)).collection("a.b")
    first = place.create(SCHEMA)
    assert place.log() is place.log()
    second = first.commit(Commit(upper=5))
    assert place.log() is second
    (tmp_path / "collections" / "a.b" / "trace").rename(tmp_path / "gone")
    assert place.log() is None
    assert place.create(SCHEMA).frontiers.upper == 0
