"""A version that this process has written is known as long as its file is the table's, and not a moment longer."""

from __future__ import annotations

from pathlib import Path

from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.open_table.last_written import LastWritten
from dbt_incremental_dd.open_table.table import TableVersion
from dbt_incremental_dd.trace.layout import Storage


def version(number: int) -> TableVersion:
    return TableVersion("t", number, upper=0, at=0, schema=Schema(()), sorted_by=(), retained=0, files=())


def test_a_version_is_known_as_long_as_its_mark_is_the_same(tmp_path: Path) -> None:
    marks: dict[int, str | None] = {1: "a", 2: "b"}
    storage, written = Storage(str(tmp_path)), LastWritten[TableVersion](lambda _, one: marks[one.number])
    assert written.of(storage, "t") is None
    first, second = version(1), version(2)
    written.note(storage, first)
    assert written.of(storage, "t") is first
    marks[1] = "c"
    assert written.of(storage, "t") is None
    written.note(storage, second)
    assert written.of(storage, "t") is second
    assert written.of(storage, "u") is None
    marks[2] = None
    assert written.of(storage, "t") is None


def test_one_that_another_writer_has_followed_at_once_is_not_known(tmp_path: Path) -> None:
    storage, written = Storage(str(tmp_path)), LastWritten[TableVersion](lambda _, one: None)
    written.note(storage, version(1))
    assert written.of(storage, "t") is None
