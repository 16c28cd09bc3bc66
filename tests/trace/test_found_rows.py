"""What a run has found by key: the same rows as a search of all files, whatever was found before, and little is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import LONG
from dbt_incremental_dd.trace import found_rows
from dbt_incremental_dd.trace.found_rows import FoundRows

COLUMNS = ("k", "a", "b")
FILES = tuple(DataFile(f"{i}.parquet", 10, 100, 0, 0, 1, 1) for i in range(5))


def schema(names: Sequence[str]) -> Schema:
    return Schema(tuple(Column(name, LONG) for name in names))


class Trace:
    """Files with keys from 0 to 9; it notes what is read of them."""

    def __init__(self) -> None:
        self.read: list[tuple[int, Sequence[str], Sequence[int]]] = []

    def rows(self, file: DataFile) -> pa.Table:
        i = FILES.index(file)
        keys = [(7 * i + n) % 10 for n in range(10) if (i + n) % 3]
        return pa.table({"k": keys, "a": [100 * i + k for k in keys], "b": keys})

    def find(self, files: Sequence[DataFile], schema: Schema, keys: Mapping[str, Sequence[Any]]) -> pa.Table | None:
        ((column, values),) = keys.items()
        self.read.append((len(files), schema.names, values))
        table = pa.concat_tables([self.rows(file) for file in files])
        table = table.filter(pc.is_in(table[column], value_set=pa.array(values, pa.int64())))
        return table.select(list(schema.names))


def sought(found: FoundRows, trace: Trace, files: int, names: Sequence[str], keys: Sequence[int]) -> pa.Table:
    table = found.rows("uri", "k", keys, FILES[:files], schema(names), trace.find)
    assert table is not None
    return table


def ordered(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


SEARCH = st.tuples(st.integers(1, 5), st.sets(st.sampled_from(COLUMNS[1:])), st.sets(st.integers(-1, 10), min_size=1))


@given(st.lists(SEARCH, max_size=12), st.booleans())
def test_the_same_as_a_search_of_all_files(searches: list[tuple[int, set[str], set[int]]], forgetful: bool) -> None:
    found, trace = FoundRows(), Trace()
    with pytest.MonkeyPatch.context() as patch:
        if forgetful:
            patch.setattr(found_rows, "_MOST_BYTES", 200)
        for files, names, keys in searches:
            wanted = ("k", *sorted(names))
            expected = trace.find(FILES[:files], schema(wanted), {"k": sorted(keys)})
            assert expected is not None
            assert ordered(sought(found, trace, files, wanted, sorted(keys))) == ordered(expected)


def test_what_is_known_is_not_read_again() -> None:
    found, trace = FoundRows(), Trace()
    sought(found, trace, 4, COLUMNS, [1, 2, 3])
    sought(found, trace, 4, ("k", "b"), [1, 3])
    assert trace.read == [(4, COLUMNS, [1, 2, 3])]
    sought(found, trace, 4, ("k", "b"), [3, 4])
    assert trace.read[1:] == [(4, ("k", "b"), [4])]


def test_of_files_that_came_after_only_they_are_read() -> None:
    found, trace = FoundRows(), Trace()
    sought(found, trace, 4, COLUMNS, [1, 2, 3])
    sought(found, trace, 5, ("k", "a"), [2])
    sought(found, trace, 5, ("k", "b"), [1])
    assert trace.read[1:] == [(1, COLUMNS, [1, 2, 3])]


def test_files_that_went_are_not_answered_from() -> None:
    found, trace = FoundRows(), Trace()
    sought(found, trace, 5, COLUMNS, [1])
    sought(found, trace, 4, COLUMNS, [1])
    assert trace.read[1:] == [(4, COLUMNS, [1])]


def test_too_many_rows_are_not_kept() -> None:
    found = FoundRows()
    for _ in range(2):
        assert found.rows("uri", "k", [1], FILES, schema(COLUMNS), lambda *_: None) is None
