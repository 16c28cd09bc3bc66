"""Both engines answer alike: each primitive over the same rows, on the driver and in Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.types import BINARY, LONG, STRING, parse
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.local import slices
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.relation.engine import Branch, Measure, Running
from dbt_incremental_dd.relation.keys import keys_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.relation import Relation, plus
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.layout import Storage
from tests.local.test_expressions import SMALL, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema((*(Column(name, parse(kind)) for name, (kind, _) in SMALL.items()), DIFF_COLUMN))
BY = Equality(Expr("c6"), Expr("d6"))
EQUALITIES = {
    "columns": [BY],
    "values": [Equality(Expr("upper(c6)"), Expr("upper(d6)"))],
    "NULL to NULL": [Equality(Expr("c6"), Expr("d6"), null_safe=True)],
    "both": [BY, Equality(Expr("c8"), Expr("d8"), null_safe=True)],
    "other integers": [Equality(Expr("c1"), Expr("d2"))],
    "decimals": [Equality(Expr("c4"), Expr("d5"))],
    "decimals, NULL to NULL": [Equality(Expr("c5"), Expr("d5"), null_safe=True)],
    "a decimal and an integer": [Equality(Expr("c4"), Expr("d1"))],
    "times": [Equality(Expr("c11"), Expr("d11"), null_safe=True)],
    "truth": [Equality(Expr("c9"), Expr("d9"), null_safe=True)],
    "one side twice": [BY, Equality(Expr("c6"), Expr("d7"))],
    "none": [],
}
ORDER = [
    Order(Expr("c1"), descending=True, nulls_first=False),
    Order(Expr("c6"), descending=False, nulls_first=True),
    *(Order(Expr(id), descending=False, nulls_first=True) for id in ("c2", "c3", "c4", "c5", "c7", "c8", "c11")),
]
SUMS = [
    Measure(DIFF, "sum", Expr(DIFF), "BIGINT"),
    Measure("m1", "sum", Expr(f"CAST(c4 AS DECIMAL(20,2)) * CAST({DIFF} AS DECIMAL(10,0))"), "DECIMAL(37,2)"),
    Measure("m2", "max", Expr("c8"), "DATE"),
    Measure("m3", "min", Expr(f"CASE WHEN {DIFF} < 0 THEN c6 END"), "STRING"),
    Measure("m4", "max", Expr("c11"), "TIMESTAMP"),
]
IDS = [id for id in SMALL if id not in ("c9", "c10")]
"""Columns that Arrow orders as Spark does."""


@pytest.fixture(scope="module")
def workspace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(LazySession.of(spark), Storage(str(tmp_path_factory.mktemp("state"))))


def rows(workspace: Workspace, seed: int, count: int = 120, *, of: str = "c", multiset: bool = False) -> Relation:
    """Random rows, some of them equal; ``of``: what their columns are called by."""
    rng = random.Random(seed)
    made = table(rng, count, SMALL)
    made = pa.concat_tables([made, made.slice(0, count // 4)])
    diffs = [rng.choice([1, 1, 2, 3] if multiset else [-2, -1, 1, 1, 3]) for _ in range(made.num_rows)]
    made = made.append_column(DIFF, pa.array(diffs, pa.int64()))
    found = Relation.of(workspace, made, SCHEMA, positive=multiset)
    return found.select([(name.replace("c", of), name) for name in SMALL])


def in_spark(relation: Relation) -> Relation:
    return replace(relation, rows=relation.frame)


def contents(relation: Relation) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The columns with their types, and each row with the sum of its diffs; by name."""
    names = sorted(name for name in relation.names if name != DIFF)
    found = relation.localized().table
    assert found is not None
    counted: Counter[str] = Counter()
    for row in found.arrow.to_pylist():
        counted[str([row[name] for name in names])] += row.get(DIFF, 1)
    types = {column.name: str(column.type) for column in found.schema}
    return [(name, types[name]) for name in names], Counter({key: n for key, n in counted.items() if n})


UNARY: dict[str, Callable[[Relation], Relation]] = {
    "select": lambda r: r.select([("a", "c1"), ("b", "c1"), ("c", "c6")]),
    "map": lambda r: r.map([("a", Expr("c1 + 1")), ("b", Expr("upper(c6)")), ("c", Expr("c9"))]),
    "map of diffs": lambda r: r.map([("a", Expr("c7"))], Expr(f"CASE WHEN c1 > 0 THEN -{DIFF} ELSE {DIFF} END")),
    "extend": lambda r: r.extend([("a", Expr("c4 * 2")), ("b", Expr("c1 IS NULL"))]),
    "update": lambda r: r.update([("c1", Expr("coalesce(c1, 5)"))]),
    "filter": lambda r: r.filter(Expr("c1 > 0 OR c6 = 'a'")),
    "negate": lambda r: r.negate(),
    "consolidate": lambda r: r.consolidate(),
    "with_diff": lambda r: r.with_diff(Expr(f"CASE WHEN c9 THEN {DIFF} ELSE 0L END")),
    "group_by": lambda r: r.columns(IDS).group_by(["c7", "c3"], SUMS),
    "group_by everything": lambda r: r.columns(IDS).group_by([], SUMS),
    "group_by of nothing": lambda r: r.filter(Expr("c1 < -100")).columns(IDS).group_by([], SUMS[1:]),
    "distinct": lambda r: r.distinct(["c7", "c8"]),
    "generate numbers": lambda r: r.generate("explode(sequence(c1 % 5, c3 % 4))", ["e"], outer=False),
    "generate in steps": lambda r: r.generate(
        "posexplode(sequence(c2 % 10, c2 % 10 + abs(c1 % 9), 2))", ["p", "e"], outer=True
    ),
    "generate days": lambda r: r.generate(
        "explode(sequence(c8, date_add(c8, 9), INTERVAL '2' DAY))", ["e"], outer=True
    ),
    "generate days back": lambda r: r.generate("explode(sequence(c8, date_sub(c8, 2)))", ["e"], outer=False),
    "generate parts": lambda r: r.generate("posexplode(split(concat(c6, ',', c7), ','))", ["p", "e"], outer=False),
    "unpivot": lambda r: r.unpivot(
        [
            Branch([("k", "c1"), ("v", "c6")], Expr(f"CASE WHEN c1 > 0 THEN {DIFF} ELSE 0L END")),
            Branch([("k", "c1"), ("v", "c7")], Expr(f"-{DIFF}")),
        ]
    ),
    "running": lambda r: r.columns(IDS).consolidate().running(["c7"], ORDER, [Running("n", Expr(DIFF)), _THROUGH]),
    "running of single rows": lambda r: (
        r.columns(IDS).consolidate().running(IDS, ORDER, [Running("n", Expr(DIFF)), _THROUGH])
    ),
    "running of everything": lambda r: r.columns(IDS).consolidate().running([], ORDER, [_THROUGH]),
    "copies": lambda r: r.copies("n"),
    "restrict": lambda r: keys_of(r.filter(Expr("c1 > 0")), ("c6", "c8")).restricted(r),
    "restrict to the others": lambda r: r.restrict(r.filter(Expr("c1 > 0")).distinct(["c1"]), ["c1"], inside=False),
}
_THROUGH = Running("m", Expr("CAST(c1 AS BIGINT)"), through=True)

MULTISET: dict[str, Callable[[Relation], Relation]] = {
    "expand": lambda r: r.expand(),
    "once": lambda r: r.once(),
    "window": lambda r: r.columns(IDS).expand().window([("w", Expr("sum(c1) OVER (PARTITION BY c7)"))]),
    "first": lambda r: r.columns(IDS).consolidate().first(ORDER, 7),
}


@pytest.mark.parametrize("name", UNARY)
def test_of_updates(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    given = rows(workspace, 1)
    here, there = UNARY[name](given), UNARY[name](in_spark(given))
    assert here.is_local
    assert not there.is_local
    assert contents(here) == contents(there)
    assert contents(here)[1]
    monkeypatch.setattr(slices, "ROWS", 40)
    in_parts = UNARY[name](given)
    assert in_parts.is_local
    assert contents(in_parts) == contents(there)


@pytest.mark.parametrize("name", MULTISET)
def test_of_multisets(workspace: Workspace, name: str) -> None:
    given = rows(workspace, 2, multiset=True)
    here, there = MULTISET[name](given), MULTISET[name](in_spark(given))
    assert here.is_local
    assert contents(here) == contents(there)
    assert contents(here)[1]


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("residual", ["", "c1 > d1", "c8 <= d8 AND d2 IS NOT NULL"])
@pytest.mark.parametrize("by", EQUALITIES)
def test_joins(workspace: Workspace, kind: Any, residual: str, by: str) -> None:
    left, right = rows(workspace, 3, 40), rows(workspace, 4, 30, of="d", multiset=True)
    predicates = [Expr(residual)] if residual else []
    here = left.join(right, kind, EQUALITIES[by], predicates)
    there = in_spark(left).join(in_spark(right), kind, EQUALITIES[by], predicates)
    assert here.is_local
    assert contents(here) == contents(there)
    assert contents(here)[1] or by not in ("columns", "values")


@pytest.mark.parametrize(("key", "is_local"), [("equal", False), ("other", True), ("none", True), ("one side", True)])
def test_pairs_are_counted_where_keys_repeat(spark: SparkSession, tmp_path: Path, key: str, is_local: bool) -> None:
    workspace = Workspace(LazySession.of(spark), Storage(str(tmp_path), thresholds=Thresholds(joined_rows=1_000)))
    values = {"equal": ("a", "a"), "other": ("a", "b"), "none": (None, None), "one side": ("a", None)}[key]
    sides = []
    for name, value in zip("xy", values, strict=True):
        made = pa.table({name: pa.array([value] * 100 + ["c", "d"]), DIFF: pa.array([1] * 102, pa.int64())})
        schema = Schema((Column(name, STRING), DIFF_COLUMN))
        sides.append(Relation.of(workspace, made.cast(pa.schema([(name, pa.string()), (DIFF, pa.int64())])), schema))
    joined = sides[0].join(sides[1], "inner", [Equality(Expr("x"), Expr("y"))])
    assert joined.is_local == is_local
    assert joined.count() == (10_002 if key == "equal" else 2)


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("id", ["c1", "c5", "c6", "c7", "c8", "c9"])
@pytest.mark.parametrize("unique", ["left", "right", "both"])
def test_joins_by_a_unique_value(workspace: Workspace, kind: Any, id: str, unique: str) -> None:
    """NULLs, which match nothing, may be many."""
    left, right = rows(workspace, 13, 40), rows(workspace, 14, 40, of="d", multiset=True)
    if unique in ("left", "both"):
        left = left.distinct([id])
    if unique in ("right", "both"):
        right = right.distinct([id.replace("c", "d")])
    by = [Equality(Expr(id), Expr(id.replace("c", "d")))]
    here, there = left.join(right, kind, by, []), in_spark(left).join(in_spark(right), kind, by, [])
    assert here.is_local
    assert contents(here) == contents(there)


@pytest.mark.parametrize("keys", [["c6"], ["c6", "c8"], []])
@pytest.mark.parametrize("of_groups", [True, False])
def test_lookups(workspace: Workspace, keys: list[str], of_groups: bool) -> None:
    left = rows(workspace, 5).columns(IDS).group_by(keys, SUMS)
    right = rows(workspace, 6, 12 if keys else 0).columns(IDS).group_by(keys, SUMS)
    columns = [("found", "m2"), ("count", DIFF)]
    here = left.lookup(right, keys, columns, of_groups=of_groups)
    there = in_spark(left).lookup(in_spark(right), keys, columns, of_groups=of_groups)
    assert here.is_local
    assert contents(here) == contents(there)


def test_sums(workspace: Workspace) -> None:
    one, other = rows(workspace, 7), rows(workspace, 8).select([(name, name) for name in reversed(SMALL)])
    here, there, both = plus([one, other]), plus([in_spark(one), other]), plus([None, one, None])
    assert here is not None
    assert there is not None
    assert here.is_local
    assert contents(here) == contents(there)
    assert both is one
    assert plus([None]) is None


def test_what_the_driver_cannot_do_exactly_is_spark_s(workspace: Workspace) -> None:
    given = rows(workspace, 9)
    assert not given.filter(Expr("soundex(c6) = 'A'")).is_local
    assert not given.map([("a", Expr("exp(c2)"))]).is_local
    doubles = [Measure("x", "sum", Expr("c10"), "DOUBLE")]
    assert not given.group_by(["c6"], doubles).is_local


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("nulls_first", [True, False])
def test_bytes_are_in_order(workspace: Workspace, descending: bool, nulls_first: bool) -> None:
    values = [b"", b"a", None, b"\xff", b"\x7f", b"a\x00", b"a\xff", None, b"\x80"]
    made = pa.table({"b": pa.array(values, pa.binary()), "n": pa.array(range(9), pa.int64()), DIFF: [1] * 9})
    schema = Schema((Column("b", BINARY), Column("n", LONG), DIFF_COLUMN))
    given = Relation.of(workspace, made, schema)
    order = [Order(Expr("b"), descending, nulls_first), Order(Expr("n"), descending=False, nulls_first=True)]
    here, there = (r.running([], order, [Running("m", Expr(DIFF), through=True)]) for r in (given, in_spark(given)))
    assert here.is_local
    assert contents(here) == contents(there)


def test_rows_are_split_by_a_column(workspace: Workspace) -> None:
    given = rows(workspace, 10).extend([("i", Expr("CASE WHEN c9 THEN 3L ELSE 7L END"))])
    for relation in (given, in_spark(given)):
        parts = relation.split_by("i")
        assert sorted(parts) == [3, 7]
        total = plus(list(parts.values()))
        assert total is not None
        assert contents(total) == contents(given)


def test_a_table_in_spark_has_the_types_of_its_schema(workspace: Workspace, tmp_path: Path) -> None:
    given = rows(workspace, 11)
    assert isinstance(given.rows, Table)
    assert in_spark(given).schema == given.schema
