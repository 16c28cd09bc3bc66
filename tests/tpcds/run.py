"""``make tpcds``: TPC-DS's 99 queries as models, every table changing, each model compared with Spark's batch answer.

``python -m tests.tpcds.run --rounds 3 --seed 1 --engine spark``; data and queries come from DuckDB's extension.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Container
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema
from sqlglot import exp, parse_one

from tests.engines import engine
from tests.fuzz.run import SETTINGS
from tests.oracle import NoAnswer, Table, World

_DUCKDB = Path(__file__).parents[2] / ".venv-duckdb" / "bin" / "python"
_HELD_BACK = 0.1
"""The share of each table's rows that is not there at first."""


def main() -> int:
    """0 when every model was exact after every round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="of the data of which a slice is taken")
    parser.add_argument("--share", type=float, default=0.005, help="of each table's rows that a round changes")
    parser.add_argument("--engine", choices=["driver", "spark"], default="driver")
    parser.add_argument("--only", nargs="*", default=[], help="numbers of queries")
    options = parser.parse_args()
    from dbt_incremental_dd.runtime.session import open_session

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables, queries = data(folder, options.scale)
        spark = open_session(name, SETTINGS)
        rng = random.Random(options.seed)
        changes = {name: Changes(rows, rng) for name, (_, rows) in tables.items()}
        first = {name: Table(ddl, changes[name].first) for name, (ddl, _) in tables.items()}
        world = World(spark, folder / "state", first, engine(options.engine == "spark"))
        for number, sql in queries.items():
            if not options.only or number in options.only:
                world.model(f"q{number}", as_model(sql, tables))
        return 1 if rounds(world, changes, options.rounds, options.share) else 0


def data(folder: Path, scale: float) -> tuple[dict[str, tuple[str, list[tuple[Any, ...]]]], dict[str, str]]:
    """Each table's DDL and rows, and the queries by number."""
    program = [_DUCKDB, "-m", "tests.tpcds.data", folder, str(scale)]
    subprocess.run(program, check=True, cwd=Path(__file__).parents[2])
    tables = {}
    for file in sorted(folder.glob("*.parquet")):
        found = pq.read_table(file)
        ddl = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in from_arrow_schema(found.schema))
        tables[file.stem] = ddl, list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    return tables, json.loads((folder / "queries.json").read_text())


def as_model(sql: str, tables: Container[str]) -> str:
    """A query in Spark's dialect, its tables written ``{name}``; its columns have names that differ."""
    tree = parse_one(sql.rstrip().rstrip(";"), read="duckdb")
    for table in list(tree.find_all(exp.Table)):
        if table.name in tables and not _is_cte(table):
            table.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name)))
            table.set("this", exp.to_identifier(f"{{{table.name}}}", quoted=False))
    query = tree
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    seen: set[str] = set()
    for number, item in enumerate(query.expressions):
        name = item.alias_or_name or item.unnest().name
        if not item.is_star and (not name or name in seen):
            item.replace(exp.alias_(item.unalias().copy(), f"column_{number}"))
        seen.add(name)
    return tree.sql("spark")


def _is_cte(table: exp.Table) -> bool:
    above: exp.Expr | None = table
    while above is not None:
        with_ = above.args.get("with_")
        if with_ is not None and any(cte.alias == table.name for cte in with_.expressions):
            return True
        above = above.parent
    return False


class Changes:
    """Rows of one table that come, go, and change."""

    def __init__(self, rows: list[tuple[Any, ...]], rng: random.Random) -> None:
        self._rng = rng
        self._waiting = rng.sample(rows, int(len(rows) * _HELD_BACK))
        waiting = set(self._waiting)
        self.first = [row for row in rows if row not in waiting]

    def next(self, rows: list[tuple[Any, ...]], share: float) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """The rows to insert and to delete; ``rows`` are those that are there. A third each is new, gone, and has the
        value of another row in one column."""
        count = max(round(len(rows) * share / 3), 1)
        taken = self._rng.sample(rows, min(2 * count, len(rows)))
        gone, changed = taken[:count], taken[count:]
        new = [self._waiting.pop() for _ in range(min(count, len(self._waiting)))]
        self._waiting += gone
        return new + [self._changed(row, self._rng.choice(rows)) for row in changed], gone + changed

    def _changed(self, row: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        place = self._rng.randrange(1, len(row)) if len(row) > 1 else 0
        return (*row[:place], other[place], *row[place + 1 :])


def rounds(world: World, changes: dict[str, Changes], count: int, share: float) -> int:
    """How many models were not exact; such a model is left out of later rounds."""
    failed = 0
    for number in range(count + 1):
        if number:
            for name, table in world.tables.items():
                new, gone = changes[name].next(table.rows, share)
                world.delete(name, gone)
                world.insert(name, new)
        started = time.monotonic()
        failures = world.step_and_check_each(threads=3, fallback="error")
        for failure in failures:
            world.models.pop(failure.split(":")[0])
            told = "Spark has no answer" if NoAnswer.__name__ in failure else "FAILED"
            failed += told == "FAILED"
            print(f"{told}: {failure}\n", flush=True)
        rows = sum(world.found(name).count() > 0 for name in world.models)
        exact = f"{len(world.models)} models are exact, {rows} of them have rows"
        print(f"round {number}: {exact}, {time.monotonic() - started:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
