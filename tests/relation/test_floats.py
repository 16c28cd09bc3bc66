"""Both engines find floats equal alike: NaN is NaN, whatever its bits, and there is one zero."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import DOUBLE, FLOAT, INTEGER, LONG
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.relation.engine import Measure, Running
from dbt_incremental_dd.relation.keys import keys_of
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.layout import Storage
from tests.local.test_floats import OTHER_NAN, VALUES
from tests.relation.test_engines import contents, in_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUM = [Measure(DIFF, "sum", Expr(DIFF), "BIGINT")]
EXTREMES = [
    *(
        Measure(f"{how}_{of}", how, Expr(of), type)
        for how in ("min", "max")
        for of, type in (("x", "DOUBLE"), ("y", "FLOAT"))
    ),
    Measure("most_of_some", "max", Expr("CASE WHEN n < 30 THEN x END"), "DOUBLE"),
]
ORDER = [Order(Expr("n"), descending=False, nulls_first=True)]


@pytest.fixture(scope="module")
def workspace(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(LazySession.of(spark), Storage(str(tmp_path_factory.mktemp("state"))))


def rows(workspace: Workspace, seed: int, of: str = "") -> Relation:
    """Sixty of a DOUBLE x, a FLOAT y and an INT n."""
    rng = random.Random(seed)
    columns = {
        "x": pa.array([rng.choice(VALUES) for _ in range(60)], pa.float64()),
        "y": pa.array([rng.choice(VALUES[:-1]) for _ in range(60)], pa.float32()),
        "n": pa.array(range(60), pa.int32()),
    }
    made = pa.table({**{f"{of}{name}": values for name, values in columns.items()}, DIFF: pa.array([1] * 60)})
    types = zip(columns, (DOUBLE, FLOAT, INTEGER), strict=True)
    schema = Schema((*(Column(f"{of}{name}", type) for name, type in types), DIFF_COLUMN))
    return Relation.of(workspace, made, schema)


PRIMITIVES: dict[str, Callable[[Relation], Relation]] = {
    "group_by": lambda r: r.group_by(["x"], SUM),
    "group_by two": lambda r: r.group_by(["x", "y"], SUM),
    "distinct": lambda r: r.distinct(["x"]),
    "distinct floats": lambda r: r.distinct(["y"]),
    "distinct two": lambda r: r.distinct(["x", "y"]),
    "restrict": lambda r: keys_of(r.filter(Expr("n < 6")), ("x",)).restricted(r),
    "restrict to two": lambda r: keys_of(r.filter(Expr("n < 20")), ("x", "y")).restricted(r),
    "restrict to the others": lambda r: r.restrict(r.filter(Expr("n < 4")).distinct(["y"]), ["y"], inside=False),
    "lookup": lambda r: r.lookup(
        r.filter(Expr("n < 20")).group_by(["x"], [Measure("most", "max", Expr("n"), "INT")]), ["x"], [("most", "most")]
    ),
    "extremes": lambda r: r.extend([("k", Expr("n % 7"))]).group_by(["k"], [*SUM, *EXTREMES]),
    "extremes of everything": lambda r: r.group_by([], [*SUM, *EXTREMES]),
    "extremes of nothing": lambda r: r.filter(Expr("n < 0")).group_by([], [*SUM, *EXTREMES]),
    "running in their order": lambda r: r.running(
        [], [Order(Expr("x"), descending=True, nulls_first=True), *ORDER], [Running("so_far", Expr(DIFF), through=True)]
    ),
    "running": lambda r: r.running(["x"], ORDER, [Running("so_far", Expr("CAST(n AS BIGINT)"), through=True)]),
}


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize("seed", [1, 2])
def test_as_keys(workspace: Workspace, name: str, seed: int) -> None:
    given = rows(workspace, seed)
    here, there = PRIMITIVES[name](given), PRIMITIVES[name](in_spark(given))
    assert here.is_local
    assert not there.is_local
    assert contents(_one_zero(here)) == contents(_one_zero(there))
    assert contents(here)[1] or name == "extremes of nothing"


def _one_zero(relation: Relation) -> Relation:
    """A minimum may be either of two zeros."""
    extremes = [name for name in relation.names if name.startswith(("min_", "max_", "most_"))]
    return relation.update([(name, Expr(f"{name} + CAST(0 AS FLOAT)")) for name in extremes])


def test_the_only_zero_of_a_group_keeps_its_sign(workspace: Workspace) -> None:
    made = pa.table({"k": pa.array([1, 2]), "x": pa.array([-0.0, 0.0]), DIFF: pa.array([1, 1])})
    schema = Schema((Column("k", LONG), Column("x", DOUBLE), DIFF_COLUMN))
    found = Relation.of(workspace, made, schema).group_by(["k"], [*SUM, *EXTREMES[:1]])
    assert found.is_local
    assert contents(found)[1] == {"[1, -0.0]": 1, "[2, 0.0]": 1}


@pytest.mark.parametrize("kind", ["inner", "left", "semi", "anti"])
@pytest.mark.parametrize("null_safe", [False, True])
@pytest.mark.parametrize("is_unique", [False, True])
def test_joins(workspace: Workspace, kind: Any, null_safe: bool, is_unique: bool) -> None:
    left, right = rows(workspace, 3), rows(workspace, 4, of="o_").filter(Expr("o_n < 12"))
    if is_unique:
        right = right.distinct(["o_x"]).with_diff(Expr("1L"))
    by = [Equality(Expr("x"), Expr("o_x"), null_safe=null_safe)]
    here, there = left.join(right, kind, by, []), in_spark(left).join(in_spark(right), kind, by, [])
    assert here.is_local
    assert contents(here) == contents(there)


def test_several_nans_are_one(workspace: Workspace) -> None:
    made = pa.table({"x": pa.array([float("nan"), OTHER_NAN, 0.0, -0.0]), DIFF: pa.array([1, 1, 1, 1])})
    found = Relation.of(workspace, made, Schema((Column("x", DOUBLE), DIFF_COLUMN))).group_by(["x"], SUM)
    assert found.is_local
    assert contents(found)[1] == {"[nan]": 2, "[0.0]": 2}
