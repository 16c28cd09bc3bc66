"""Joins of columns of several types, which Spark casts: what is looked up by key are not the same values."""

from __future__ import annotations

from datetime import date
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
    "grouped": "SELECT g.k, g.n, y.v FROM (SELECT k, count(*) AS n FROM {big} GROUP BY k) g JOIN {small} y ON g.k = y.k",
}


def test_it_stays_exact(spark: SparkSession, tmp_path: Path) -> None:
    tables = {"big": "k BIGINT", "small": "k INT, v INT", "txt": "k STRING", "dec": "k DECIMAL(12,2)", "dt": "k DATE"}
    world = World(spark, tmp_path, {n: Table(ddl if n == "small" else f"id INT, {ddl}") for n, ddl in tables.items()})
    for name, sql in MODELS.items():
        world.model(name, sql)
    world.insert("big", [(1, 1), (2, 2**40), (3, None)])
    world.insert("small", [(1, 1), (2, 2), (None, 3)])
    world.insert("txt", enumerate(["1", " 2", "x", None, "1.0", "2020-01-01"]))
    world.insert("dec", [(1, Decimal("1.00")), (2, Decimal("2.50"))])
    world.insert("dt", [(1, date(2020, 1, 1))])
    for step in range(4):
        world.step_exactly(step)
        world.insert("big", [(10 + step, 2**41 + step), (20 + step, step)])
        world.insert("small", [(step, step + 5)])
        world.insert("txt", [(30 + step, str(step)), (40 + step, f"0{step}"), (50 + step, "99999999999")])
        world.insert("dec", [(60 + step, Decimal(step))])
        world.insert("dt", [(70 + step, date(2020, 1, 1 + step))])
        if step == 2:
            world.delete("small", [(1, 1)])
            world.delete("big", [(1, 1)])
    world.step_exactly(4)
