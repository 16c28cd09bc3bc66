"""Runs the scenarios of ``tests/fixtures/*.txt`` as models: the rows after each step have to be as written there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
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
    from pyspark.sql import DataFrame, SparkSession

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

        is_at_end = number in (0, len(scenario.steps) - 1)  # what users read is read there

        def check(
            name: str, title: str = step.title, session: LazySession = session, is_at_end: bool = is_at_end
        ) -> None:
            if isinstance(session, ListeningSession) and session.asked:
                asking.add(queries[name].title)
                session.asked.clear()
            rows = None if is_at_end else world.stored(name)
            found = world.found(name) if rows is None else _as_frame(spark, rows, world.dtypes(name))
            if name not in types or update:  # a query has the same types at every step
                answer = world.batch(name)
                types[name] = answer.dtypes
                if update:
                    queries[name].rows[title] = _shown(answer)
            assert world.dtypes(name) == types[name], title
            assert rows is not None or found.dtypes == types[name], title
            assert _shown(found) == queries[name].rows.get(title), title

        failures += world.step_and_check_each(check, threads=3, session=session, fallback="error")
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


def _as_frame(spark: SparkSession, stored: pa.Table, dtypes: list[tuple[str, str]]) -> DataFrame:
    """The rows, each as often as it counts: values that Spark writes as text without a job."""
    names, times = [f"c{i}" for i in range(len(dtypes))], stored.column(len(dtypes)).to_pylist()
    places = pa.array([place for place, count in enumerate(times) for _ in range(count)], pa.int64())
    schema = ", ".join(f"{name} {dtype}" for name, (_, dtype) in zip(names, dtypes, strict=True))
    return spark.createDataFrame(stored.select(range(len(names))).rename_columns(names).take(places), schema)


def _shown(frame: DataFrame) -> list[str]:
    """Each row as its columns' text, sorted; an empty string is two quotes."""
    columns = [f"c{i}" for i in range(len(frame.columns))]
    texts = frame.toDF(*columns).selectExpr(*(f"coalesce(CAST({column} AS STRING), 'NULL')" for column in columns))
    return sorted(" | ".join(value or "''" for value in row) for row in texts.collect())
