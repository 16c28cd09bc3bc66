"""Structs, and orders by flags: both engines answer alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from dbt_incremental_dd.core.schema import DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import BOOLEAN, INTEGER, LONG, STRING, Field, Struct
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.relation.engine import Running
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.layout import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema((Column("k", LONG), Column("a", STRING), Column("b", BOOLEAN), DIFF_COLUMN))
PAIR = Struct((Field("x", STRING), Field("y y", BOOLEAN)))
NOTHING = Struct((Field("none", INTEGER),))


def answers(relation: Relation) -> list[list[str]]:
    """The rows, by the columns' names."""
    table = relation.collected().table
    assert table is not None
    names = sorted(relation.names)
    return sorted([str(row[name]) for name in names] for row in table.arrow.to_pylist())


def test_structs_and_flags(spark: SparkSession, tmp_path: Path) -> None:
    workspace = Workspace(LazySession.of(spark), Storage(str(tmp_path)))
    flags = [True, False, None, True, None, False]
    arrow = pa.table({"k": [1, 1, 1, 2, 2, 2], "a": ["p", None, None, "q", "r", None], "b": flags, "dd_diff": [1] * 6})
    given = Relation.of(workspace, arrow, SCHEMA)
    for nulls_first in (True, False):
        for descending in (True, False):
            order = [Order(Expr("b"), descending, nulls_first)]
            here = given.running(["k"], order, [Running("place", Expr("1L"), through=True)])
            there = replace(given, rows=given.frame).running(["k"], order, [Running("place", Expr("1L"), through=True)])
            assert here.is_local and not there.is_local
            assert answers(here) == answers(there)
    packed = [one.pack("p", PAIR, ["a", "b"]) for one in (given, replace(given, rows=given.frame))]
    assert packed[0].is_local and not packed[1].is_local
    assert packed[0].schema == packed[1].schema
    assert answers(packed[0]) == answers(packed[1])
    for columns in (["a", "b"], ["a"], []):
        kept = ["k", *columns]
        assert {str(answers(one.unpack("p", columns))) for one in packed} == {str(answers(given.columns(kept)))}
    empty = [one.pack("p", NOTHING, []) for one in (given, replace(given, rows=given.frame))]
    assert answers(empty[0]) == answers(empty[1])
    assert [str(row[-1]) for row in answers(empty[0])] == ["None"] * 6
    assert answers(empty[0].unpack("p", ["n"])) == answers(empty[1].unpack("p", ["n"]))
