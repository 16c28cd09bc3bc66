"""What a column is made of: nothing that is left out changes it, and nothing is named that a reader would not expect."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import duckdb
import pytest

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import INTEGER
from dbt_incremental_dd.differential.column_lineage import ColumnLineage, column_lineage
from dbt_incremental_dd.frontend.block import Input
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.runtime.compile import compiled_on_driver
from tests.observe.no_session import no_session

COLUMNS = "xyzv"
INPUTS = {name: Input(name, Schema(tuple(Column(c, INTEGER) for c in COLUMNS))) for name in "abc"}
QUERIES = {
    "select x, y + z as s from a where v > 3": {"x": "=a.x", "s": "~a.y ~a.z", "": "filter:a.v"},
    "select x, sum(y + z) as s, count(*) as n from a group by x": {
        "x": "=a.x",
        "s": "+a.y +a.z",
        "n": "",
        "": "group_by:a.x",
    },
    "select x, max(y) as m, avg(z) as q from a group by x having min(v) > 1": {
        "x": "=a.x",
        "m": "+a.y",
        "q": "+a.z",
        "": "filter:a.v group_by:a.x",
    },
    "select x, count(distinct y) as n from a group by x": {"x": "=a.x", "n": "+a.y", "": "group_by:a.x group_by:a.y"},
    "select a.x, b.y as b, coalesce(a.z, b.z) as z from a join b on a.x = b.x left join c on c.y = a.y": {
        "x": "=a.x",
        "b": "=b.y",
        "z": "~a.z ~b.z",
        "": "join:a.x join:a.y join:b.x join:c.y",
    },
    "select coalesce(a.x, b.x) as x, b.v from a full join b on a.x = b.x": {
        "x": "~a.x ~b.x",
        "v": "=b.v",
        "": "join:a.x join:b.x",
    },
    "select x from a union all select y from b": {"x": "=a.x =b.y", "": ""},
    "select x, y from a where not exists (select 1 from b where b.y = a.v)": {
        "x": "=a.x",
        "y": "=a.y",
        "": "join:a.v join:b.y",
    },
    "select distinct x, s from (select x, sum(y) as s from a group by x, z)": {
        "x": "=a.x",
        "s": "+a.y",
        "": "group_by:a.x group_by:a.y group_by:a.z",
    },
    "select x, sum(z) over (partition by y) as w from a": {"x": "=a.x", "w": "~a.z window:a.y", "": ""},
    "select x from (select x, y, rank() over (partition by y order by z desc) as r from a) where r = 1": {
        "x": "=a.x",
        "": "filter:a.y filter:a.z",
    },
}
DUCK = duckdb.connect()
_SIGNS = {"=": "identity", "~": "transformation", "+": "aggregation"}


def lineage(sql: str) -> ColumnLineage:
    query = parsed(sql)
    inputs = {relation.key: INPUTS[relation.key] for relation in query.relations}
    made = compiled_on_driver(no_session(), "m", query, inputs)
    assert made is not None, "Spark would be asked"
    return column_lineage(made[0])


def written(text: str) -> set[tuple[str, str, str]]:
    found = set()
    for word in text.split():
        how, _, name = word.partition(":") if ":" in word else (_SIGNS[word[0]], "", word[1:])
        found.add((*name.split("."), how))
    return found


@pytest.mark.parametrize("sql", QUERIES)
def test_each_column_names_what_it_is_made_of(sql: str) -> None:
    found = lineage(sql)
    told = {name: {(one.collection, one.column, one.how) for one in of} for name, of in found.columns.items()}
    told[""] = {(one.collection, one.column, one.how) for one in found.rows}
    assert told == {name: written(text) for name, text in QUERIES[sql].items()}


@pytest.mark.parametrize("sql", QUERIES)
def test_what_is_not_named_changes_nothing(sql: str) -> None:
    """Every input column that a column's lineage does not have gets other values."""
    rng, found = random.Random(sql), lineage(sql)
    for _ in range(4):
        rows = {name: [[rng.randrange(6) for _ in COLUMNS] for _ in range(12)] for name in INPUTS}
        for number, (column, made_of) in enumerate(found.columns.items()):
            counts = {(one.collection, one.column) for one in made_of | found.rows}
            other = {
                name: [[v if (name, c) in counts else rng.randrange(6) for c, v in of_row(row)] for row in of]
                for name, of in rows.items()
            }
            assert answer(sql, rows, number) == answer(sql, other, number), column


def of_row(row: list[int]) -> Iterable[tuple[str, int]]:
    return zip(COLUMNS, row, strict=True)


def answer(sql: str, rows: dict[str, list[list[int]]], column: int) -> Counter[Any]:
    """The column's values, as DuckDB computes them."""
    for name, of in rows.items():
        values = ", ".join(str(tuple(row)) for row in of)
        DUCK.execute(f"create or replace table {name} as from (values {values}) t({', '.join(COLUMNS)})")
    return Counter(row[column] for row in DUCK.sql(sql).fetchall())
