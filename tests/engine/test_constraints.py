"""Constraints of a contract: a change that violates one is not stored, any other is; whoever checks it."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core import types
from dbt_incremental_dd.core.errors import ColumnsError, ConfigError, ContractError
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.types import INTEGER, LONG, STRING
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.runtime.constraints import Constrained, enforce
from dbt_incremental_dd.runtime.contract import Constraint, Contract
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.commit import Commit
from dbt_incremental_dd.trace.layout import CollectionStore, Storage
from dbt_incremental_dd.trace.log import Log
from dbt_incremental_dd.trace.write import write_arrow
from tests.engine.test_runs import jobs_of
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (("k", "int"), ("v", "bigint"), ("s", "string"), ("x", "double"))
ROWS = "k INT, v BIGINT, s STRING, x DOUBLE"
NOT_NULL = Constraint("not_null", ("k",))
CHECK = Constraint("check", (), "v > 0 and length(s) < 4", "sane")
BY_SPARK = Constraint("check", (), "sinh(v) < 1000")
UNIQUE = Constraint("unique", ("v", "S"))
FLOATS = Constraint("unique", ("x",))
KEY = Constraint("primary_key", ("k",))


def holds(constraint: Constraint, rows: list[tuple[Any, ...]]) -> bool:
    """What the constraint means."""
    if constraint.type == "check":
        if constraint is BY_SPARK:
            return all(v is None or v < 7 for _, v, _, _ in rows)
        return not any((v is not None and v <= 0) or (s is not None and len(s) >= 4) for _, v, s, _ in rows)
    indexes = [next(i for i, (name, _) in enumerate(COLUMNS) if name == c.lower()) for c in constraint.columns]
    return _holds(constraint.type, indexes, rows)


def _holds(kind: str, indexes: list[int], rows: list[tuple[Any, ...]]) -> bool:
    keys = [tuple(row[i] for i in indexes) for row in rows]
    has_null = any(None in key for key in keys)
    counted = Counter(key for key in keys if None not in key)
    is_unique = max(counted.values(), default=0) < 2
    return {"not_null": not has_null, "unique": is_unique, "primary_key": is_unique and not has_null}[kind]


def random_row(rng: random.Random, key: int) -> tuple[Any, ...]:
    """Most are allowed by everything."""
    k = key if rng.random() < 0.85 else rng.choice([None, rng.randrange(key + 1)])
    v = rng.choice([1, 2, 3, 4, 5, 6, None]) if rng.random() < 0.85 else rng.choice([0, -1, 8])
    s = f"{rng.randrange(36):02d}" if rng.random() < 0.85 else rng.choice(["long", None])
    return (k, v, s, key / 3 if rng.random() < 0.85 else rng.choice([0.0, -0.0, None, float(key)]))


class NoSpark:
    """The settings of a session that is not asked for anything else."""

    class conf:
        @staticmethod
        def get(name: str, default: str | None = None) -> str | None:
            return default


def test_small_changes_are_checked_without_spark(tmp_path: Path) -> None:
    """Keys and NULLs: what is stored is looked up by the keys of the change alone."""
    schema = Schema((Column("k", INTEGER), Column("v", LONG), Column("s", STRING), Column("d", types.Decimal(9, 2))))
    columns = list(schema.names)
    constraints = [
        Constraint(kind, keys)  # type: ignore[arg-type]
        for kind in ("not_null", "unique", "primary_key")
        for keys in (("k",), ("V", "s"), ("d",), ("k", "s", "d"))
    ]
    rng, refused = random.Random(7), Counter[str]()
    for number, wanted in enumerate(constraints):
        place = Storage(str(tmp_path)).collection(f"s.m{number}")
        rows = Counter[tuple[Any, ...]]()
        log: Log | None = None
        for t in range(1, 19):
            new = [_row(rng) for _ in range(rng.randrange(1, 4))]
            gone = rng.sample(sorted(rows.elements(), key=str), min(rows.total(), rng.randrange(3)))
            diffs = Counter(new)
            diffs.subtract(gone)
            change = [(*row, diff) for row, diff in diffs.items() if diff]
            if not change:
                continue
            table = pa.table(dict(zip((*columns, DIFF), zip(*change, strict=True), strict=True)), _arrow(schema))
            after = rows + Counter(new)
            after.subtract(gone)
            workspace = Workspace(LazySession.of(NoSpark()), place.storage)  # type: ignore[arg-type]
            found = Relation.of(workspace, table, Schema((*schema.columns, DIFF_COLUMN)))
            relation = Constrained(LazySession.of(NoSpark()), place.storage, "s.m", schema, log)  # type: ignore[arg-type]
            indexes = [columns.index(name.lower()) for name in wanted.columns]
            try:
                enforce(relation, [wanted], frozenset([wanted]), replace(found, consolidated=True))
                is_kept = True
            except ContractError as error:
                is_kept = False
                assert wanted.title in error.message and "s: " in error.message
                refused[wanted.type] += 1
            assert is_kept == _holds(wanted.type, indexes, list(after.elements())), (wanted, rows, change)
            if is_kept:
                rows = +after
                log = _stored(place, log, schema, table, t)
    assert len(refused) == 3, refused


def _row(rng: random.Random) -> tuple[Any, ...]:
    null = rng.random() < 0.1
    text = f"{rng.randrange(30)}"
    return (rng.randrange(200), None if null else rng.randrange(60), text, Decimal(rng.randrange(300)) / 100)


def _arrow(schema: Schema) -> pa.Schema:
    return pa.schema([*((c.name, arrow_type(c.type)) for c in schema), (DIFF, pa.int64())])


def _stored(place: CollectionStore, log: Log | None, schema: Schema, table: pa.Table, t: int) -> Log:
    stored = Schema((*schema.columns, TIME_COLUMN, DIFF_COLUMN))
    log = log or place.create(stored)
    table = table.append_column(TIME, pa.array([t] * table.num_rows, pa.int64())).select(list(stored.names))
    return log.commit(
        Commit(add=(write_arrow(place.storage, place.trace_uri, table, stored, ("k", "v", "s")),), upper=t + 1)
    )


@pytest.mark.parametrize("how", ["driver", "in_spark"])
def test_only_what_keeps_to_them_is_stored(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, how: str
) -> None:
    thresholds = request.getfixturevalue("in_spark") if how == "in_spark" else None
    rng = random.Random(how)
    all_of_them = [NOT_NULL, CHECK, UNIQUE, KEY, FLOATS, BY_SPARK]
    world = World(spark, tmp_path, {"t": Table(ROWS, [(i, 1, f"{i:02d}", i + 0.5) for i in range(4)])}, thresholds)
    world.model("m", "SELECT k, v, s, x FROM {t}")
    key, refused = 10, Counter[str]()
    for step in range(5 if how == "driver" else 4):
        constraints = tuple(rng.sample(all_of_them, rng.choice([1, 2, 4])))
        before, rows = world.found("m").collect() if step else [], world.tables["t"].rows
        gone = rng.sample(rows, min(len(rows), rng.randrange(4)))
        new = [random_row(rng, key + i) for i in range(rng.randrange(1, 5))]
        new += [row for row in gone if rng.random() < 0.3]
        key += 10
        world.delete("t", gone)
        world.insert("t", new)
        broken = [c for c in constraints if not holds(c, world.tables["t"].rows)]
        contract = Contract(COLUMNS, constraints)
        if broken:
            with pytest.raises(ContractError) as error:
                world.step(contract=contract)
            named = [c for c in broken if c.title in error.value.message]
            assert named and ("(k: " in error.value.message or "(v: " in error.value.message), error.value.message
            refused.update(c.type for c in named)
            assert not step or Counter(world.found("m").collect()) == Counter(before), "nothing is stored"
            kept = []
            for row in world.tables["t"].rows:  # corrected
                if all(holds(c, [*kept, row]) for c in constraints):
                    kept.append(row)
            world.delete("t", list((Counter(world.tables["t"].rows) - Counter(kept)).elements()))
        world.step(contract=contract)
        world.check()
    assert refused


def test_a_new_constraint_is_checked_of_what_is_stored(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path, {"t": Table(ROWS, [(1, 1, "a", 0.5), (1, 2, "b", 1.5), (None, 3, "c", 2.5)])})
    world.model("m", "SELECT k, v, s, x FROM {t}")
    world.step(contract=Contract(COLUMNS, (CHECK,)))
    for constraint, shown in ((KEY, r"primary_key on k is violated by rows: \(k: NULL, v: 3"), (NOT_NULL, "k: NULL")):
        with pytest.raises(ContractError, match=shown):
            world.step(contract=Contract(COLUMNS, (CHECK, constraint)))
    world.delete("t", [(None, 3, "c", 2.5)])
    world.step(contract=Contract(COLUMNS, (CHECK,)))
    with pytest.raises(
        ContractError, match=r"primary_key on k .* more than once: \(k: 1, v: [12].*\), \(k: 1, v: [12]"
    ):
        world.step(contract=Contract(COLUMNS, (CHECK, KEY)))
    both = Contract(COLUMNS, (CHECK, UNIQUE))
    world.step(contract=both)
    assert jobs_of(spark, lambda: world.step(contract=both)) == 0, "what is proven is not looked at again"
    world.insert("t", [(7, 5, "e", 7.5)])
    jobs = []
    for contract in (both, None):
        run, request = world._next_run(), world._request("m", contract=contract)
        jobs.append(jobs_of(spark, lambda run=run, request=request: run.model(request)))
        world.insert("t", [(7, 6, "e", 8.5)])
    assert jobs[0] == jobs[1], "the change and its keys are looked at on the driver"
    world.step()
    world.insert("t", [(8, 5, "e", 8.5)])
    world.step()
    with pytest.raises(ContractError, match="unique on v, S"):
        world.step(contract=both)
    world.check()


def test_groups_and_rebuilds(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path, {"t": Table(ROWS, [(1, 1, "a", 0.5), (1, 2, "b", 1.5)])})
    world.model("m", "SELECT k, sum(v) AS total FROM {t} GROUP BY k")
    contract = Contract((("TOTAL", "bigint"), ("k", "int")), (KEY, Constraint("check", (), "total >= 0")))
    world.step(contract=contract)
    world.insert("t", [(1, -9, "c", 2.5)])
    with pytest.raises(ContractError, match=re.escape("check (total >= 0) is violated by rows: (k: 1, total: -6)")):
        world.step(contract=contract)
    world.insert("t", [(1, 9, "c", 2.5), (2, 1, "d", 1.0)])
    world.step(contract=contract)
    world.model("m", "SELECT k, v AS total FROM {t}")
    with pytest.raises(ContractError, match=r"more than once|violated by rows"):
        world.step(contract=contract)
    world.model("m", "SELECT k, sum(v) + 1 AS total FROM {t} GROUP BY k")
    assert world.step(contract=contract)["m"].strategy == "rebuild"
    world.check()


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("nope > 0", "no column nope"),
        ("k +", "cannot be checked"),
        ("k + 1", "cannot be checked: .*BOOLEAN"),
        ("rand() < 2", r"rand\(\) gives another answer"),
        ("k < year(current_date())", "not about the columns of one row"),
        ("d < dd_now()", "not about the columns of one row"),
        ("exists (select 1)", "not about the columns of one row"),
        ("sum(k) > 0", "cannot be checked"),
        ("nope(k)", "cannot be checked"),
    ],
)
def test_checks_that_make_no_sense(spark: SparkSession, tmp_path: Path, expression: str, why: str) -> None:
    world = World(spark, tmp_path, {"t": Table("k INT, d TIMESTAMP", [(1, None)])})
    world.model("m", "SELECT k, d FROM {t}")
    contract = Contract((("k", "int"), ("d", "timestamp")), (Constraint("check", (), expression, "named"),))
    with pytest.raises(ConfigError, match=f"constraint named, check.*{why}"):
        world.step(contract=contract)


@pytest.mark.parametrize("how", ["driver", "in_spark"])
def test_columns_of_a_contract(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, how: str) -> None:
    thresholds = request.getfixturevalue("in_spark") if how == "in_spark" else None
    table = Table(ROWS + ", a ARRAY<STRUCT<p: INT>>", [(1, 1, "a", 0.5, None)])
    world = World(spark, tmp_path, {"t": table}, thresholds)
    world.model("m", "SELECT k, a, `s` AS `odd. name` FROM {t}")
    right = (("odd. name", "string"), ("K", "integer"), ("a", "array<struct<p:int>>"))
    world.step(contract=Contract(right, (Constraint("unique", ("odd. name",)), Constraint("not_null", ("K",)))))
    with pytest.raises(ConfigError, match="there is no column q"):
        world.step(contract=Contract(right, (Constraint("not_null", ("q",)),)))
    with pytest.raises(ConfigError, match="none of Spark's"):
        world.step(contract=Contract((("k", "integr"), *right[1:])))
    for wrong in (right[:2], (*right, ("z", "int")), (("odd. name", "int"), *right[1:])):
        with pytest.raises(ColumnsError):
            world.step(contract=Contract(wrong))
