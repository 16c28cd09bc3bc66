"""Joins of columns of several types, which Spark casts: what is looked up by key are not the same values."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODELS = {
    "wider": "SELECT x.id, y.v FROM {big} x JOIN {small} y ON x.k = y.k",
    "text": "SELECT x.id, y.v FROM {txt} x JOIN {small} y ON x.k = y.k",
    "outer": "SELECT x.id, y.k FROM {txt} x LEFT JOIN {big} y ON x.k = y.k",
    "among": "SELECT x.id FROM {big} x WHERE k IN (SELECT k FROM {small})",
    "anti": "SELECT x.id FROM {big} x WHERE NOT EXISTS (SELECT 1 FROM {small} s WHERE s.k = x.k)",
    "residual": "SELECT x.id, y.v FROM {big} x LEFT JOIN {small} y ON x.k = y.k AND y.v <> x.id",
    "decimal": "SELECT x.id, y.v FROM {dec} x JOIN {small} y ON x.k = y.k",
    "dates": "SELECT x.id FROM {dt} x JOIN {txt} y ON x.k = y.k",
    "two_decimals": "SELECT x.id, y.id AS other FROM {dec} x LEFT JOIN {fine} y ON x.k = y.k",
    "no_such_decimal": "SELECT x.id FROM {fine} x WHERE NOT EXISTS (SELECT 1 FROM {dec} y WHERE y.k = x.k)",
    "times": "SELECT x.id, y.id AS other FROM {ts} x JOIN {ts} y ON x.k = y.k AND x.id <> y.id",
    "first_moments": "SELECT x.id, y.id AS other FROM {ts} x LEFT JOIN {dt} y ON x.k = y.k",
    "times_as_text": "SELECT x.id, y.id AS other FROM {txt} x JOIN {ts} y ON x.k = y.k",
    "flags": "SELECT x.id, y.id AS other FROM {flag} x JOIN {flag} y ON x.k <=> y.k",
    "grouped": "SELECT g.k, g.n, y.v FROM (SELECT k, count(*) AS n FROM {big} GROUP BY k) g JOIN {small} y ON g.k = y.k",
}


def test_it_stays_exact(spark: SparkSession, tmp_path: Path) -> None:
    tables = {"big": "k BIGINT", "small": "k INT, v INT", "txt": "k STRING", "dec": "k DECIMAL(12,2)", "dt": "k DATE"}
    tables |= {"fine": "k DECIMAL(18,6)", "ts": "k TIMESTAMP", "flag": "k BOOLEAN"}
    world = World(spark, tmp_path, {n: Table(ddl if n == "small" else f"id INT, {ddl}") for n, ddl in tables.items()})
    for name, sql in MODELS.items():
        world.model(name, sql)
    world.insert("big", [(1, 1), (2, 2**40), (3, None)])
    world.insert("small", [(1, 1), (2, 2), (None, 3)])
    world.insert("txt", enumerate(["1", " 2", "x", None, "1.0", "2020-01-01"]))
    world.insert("dec", [(1, Decimal("1.00")), (2, Decimal("2.50"))])
    world.insert("dt", [(1, date(2020, 1, 1))])
    world.insert("fine", [(1, Decimal("1.000000")), (2, Decimal("2.500001")), (3, Decimal("2.5")), (4, None)])
    world.insert("ts", [(1, datetime(2020, 1, 1)), (2, datetime(2020, 1, 1, 9, 30)), (3, None)])
    world.insert("flag", [(1, True), (2, None), (3, False)])
    for step in range(4):
        world.step_exactly(step)
        world.insert("fine", [(80 + step, Decimal(step)), (90 + step, Decimal("2.500001"))])
        world.insert("ts", [(80 + step, datetime(2020, 1, 1 + step)), (90 + step, datetime(2020, 1, 1, 9, 30))])
        world.insert("flag", [(80 + step, [True, False, None][step % 3])])
        world.insert("big", [(10 + step, 2**41 + step), (20 + step, step)])
        world.insert("small", [(step, step + 5)])
        world.insert("txt", [(30 + step, str(step)), (40 + step, f"0{step}"), (50 + step, "99999999999")])
        world.insert("dec", [(60 + step, Decimal(step))])
        world.insert("dt", [(70 + step, date(2020, 1, 1 + step))])
        if step == 2:
            world.delete("small", [(1, 1)])
            world.delete("big", [(1, 1)])
            world.delete("fine", [(3, Decimal("2.5"))])
            world.delete("ts", [(1, datetime(2020, 1, 1))])
    world.step_exactly(4)
