"""Runs the scenarios of ``tests/fixtures/*.txt`` as models: the rows after each step have to be as written there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from benchmarks.asked import ListeningSession
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.frontend.parsed import parsed
from dbt_incremental_dd.frontend.template import template
from dbt_incremental_dd.relation.lazy_session import LazySession
from tests import fixtures
from tests.fixtures.scenario import Scenario, Step
from tests.oracle import Table, World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENARIOS = sorted(Path(fixtures.__file__).parent.glob("*.txt"))


ASKING = Path(fixtures.__file__).parent / "asking.json"
"""By file, the titles of queries whose small changes ask Spark for something. All others would need no session."""


def run(
    spark: SparkSession,
    folder: Path,
    scenario: Scenario,
    thresholds: Thresholds | None = None,
    *,
    is_open: bool = True,
) -> set[str]:
    """All steps of all queries; all failures are told together. ``is_open``: else first builds have a session, and
    later runs are as in a process without one. Returns the titles of the queries that ask for it then."""
    world = World(spark, folder, {name: Table(ddl) for name, ddl in scenario.tables.items()}, thresholds)
    queries = {f"q{i}": query for i, query in enumerate(scenario.queries)}
    for name, query in queries.items():
        written = parsed(query.sql)
        text, keys = template(written, {relation.key: None for relation in written.relations})
        world.model(name, text.format(*(f"{world.schema}.{key}" for key in keys)))
    update = bool(os.environ.get("DD_UPDATE_FIXTURES"))
    failures: list[str] = []
    asking: set[str] = set()
    types: dict[str, list[tuple[str, str]]] = {}
    for number, step in enumerate(scenario.steps):
        _change(spark, world, step)
        session = ListeningSession(spark) if number and not is_open else LazySession.of(spark)

        def note(name: str, title: str = step.title, session: LazySession = session) -> None:
            if isinstance(session, ListeningSession) and session.asked:
                asking.add(queries[name].title)
                session.asked.clear()
            if name not in types:  # a query has the same types at every step
                types[name] = world.batch(name).dtypes
                assert world.found(name).dtypes == types[name], title
            if update:
                world.batch(name).createOrReplaceTempView(f"answer_{name}")
                queries[name].rows[title] = _shown(spark, {f"answer_{name}": len(types[name])})[f"answer_{name}"]

        told = world.step_and_check_each(note, threads=3, session=session, fallback="error")
        ran = types.keys() - {failure.split(":")[0] for failure in told}
        shown = _shown(spark, {f"{world.schema}.{name}": len(types[name]) for name in ran})
        rows = {name: shown[f"{world.schema}.{name}"] for name in sorted(ran)}
        wrong = [name for name in rows if rows[name] != queries[name].rows.get(step.title)]
        failures += told + [f"{name}: {step.title}: {rows[name]}" for name in wrong]
    if update:
        scenario.write()
    assert not failures, "\n\n".join(f"{queries[f.split(':')[0]].title}: {f}" for f in failures)
    return asking


def _change(spark: SparkSession, world: World, step: Step) -> None:
    if step.time is not None:
        world.time = step.time
    for change in step.changes:
        rows = _values(spark, world.tables[change.table].ddl, change.rows)
        (world.insert if change.sign == "+" else world.delete)(change.table, rows)


def _values(spark: SparkSession, ddl: str, rows: str) -> list[tuple[Any, ...]]:
    schema = StructType.fromDDL(ddl)
    names = [field.name for field in schema]
    casts = ", ".join(f"CAST({field.name} AS {field.dataType.simpleString()})" for field in schema)
    return [tuple(row) for row in spark.sql(f"SELECT {casts} FROM VALUES {rows} AS t({', '.join(names)})").collect()]


def _shown(spark: SparkSession, relations: dict[str, int]) -> dict[str, list[str]]:
    """Each relation's rows, given how many columns it has: a row as its columns' text, sorted; an empty string is two
    quotes. One query for all: what a query costs is not in its rows."""
    branches = []
    for relation, width in relations.items():
        columns = [f"c{i}" for i in range(width)]
        row = ", ".join(f"coalesce(CAST({column} AS STRING), 'NULL')" for column in columns)
        branches.append(f"SELECT '{relation}' AS name, array({row}) AS row FROM {relation} AS t({', '.join(columns)})")
    shown: dict[str, list[str]] = {relation: [] for relation in relations}
    for relation, row in spark.sql(" UNION ALL ".join(branches)).collect() if branches else ():
        shown[relation].append(" | ".join(value or "''" for value in row))
    return {relation: sorted(rows) for relation, rows in shown.items()}
