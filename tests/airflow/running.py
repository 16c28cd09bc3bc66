"""The example projects under a real Airflow, for tests that share it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import dbt_incremental_dd
from tests.airflow.standalone import Airflow, until
from tests.connect import serving
from tests.servers.postgres import Postgres, binaries

REPOSITORY = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
FEED = {"FLIGHTS_SAMPLE": "0.1"}
"""What is tested is the way of the runs; all flights would take ten times as long."""


@dataclass
class Running:
    """Airflow, and the copy of the examples that its DAGs work on."""

    airflow: Airflow
    examples: Path

    @property
    def state(self) -> Path:
        return self.examples / "flights" / "state" / "prod"

    @property
    def bytes(self) -> int:
        """Of all live files of flights."""
        return sum(found.bytes for found in dbt_incremental_dd.open(str(self.state)).status())

    def feed(self, *arguments: str) -> None:
        """More of a project's data."""
        _call(self.examples, sys.executable, "feed.py", *arguments)

    def rows(self, day: str) -> dict[str, Counter[str]]:
        """All collections of flights as of the beginning of a day."""
        return {c.name: contents(c.as_of(day)) for c in dbt_incremental_dd.open(str(self.state)).collections()}

    def reading(self, name: str) -> set[str]:
        """A collection, and those that are made of it."""
        inputs = {found.name: found.inputs for found in dbt_incremental_dd.open(str(self.state)).status()}
        found, size = {name}, 0
        while len(found) > size:
            size = len(found)
            found |= {other for other, read in inputs.items() if not found.isdisjoint(read)}
        return found

    def day(self, day: str) -> str:
        """The id of the run whose data is of that day."""
        until(lambda: any(_day(run) == day for run in self.airflow.runs("flights")), 120, f"a run of {day}")
        return next(str(run["dag_run_id"]) for run in self.airflow.runs("flights") if _day(run) == day)


def _day(run: dict[str, Any]) -> str:
    return str(run["data_interval_start"])[:10]


def contents(table: pa.Table) -> Counter[str]:
    """A collection's rows, as many times as they are there."""
    found: Counter[str] = Counter()
    for row in table.to_pylist():
        found[str({**row, "dd_diff": 0})] += row["dd_diff"]
    return found


def _call(folder: Path, *command: str) -> None:
    environment = {**os.environ, **FEED, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def examples_running(folder: Path) -> Iterator[Running]:
    """The flights of the first 302 days are there, and the payments' first state."""
    examples = folder / "example_project"
    made = ("data", "state", "target", "logs", ".dbt_incremental_dd", "__pycache__")
    shutil.copytree(REPOSITORY / "example_project", examples, ignore=shutil.ignore_patterns(*made))
    for file in (*(Path(__file__).parent / "dags").glob("*.py"), *(examples / "cosmos").glob("*.py")):
        shutil.copy(file, examples / "dags")
    with serving(folder) as remote, _database() as database:
        states = ",".join(str(examples / name / "state" / "prod") for name in ("flights", "payments"))
        settings = {"SPARK_REMOTE": remote, "AIRFLOW__DIFFERENTIAL__STATE_ROOTS": states, **database, **FEED}
        found = Running(Airflow(folder / "home", examples / "dags", settings), examples)
        _begin_later(examples / "dags")
        found.feed("flights", "--until", "2013-10-29")
        found.feed("payments")
        _break(examples)
        for name in ("payments", "flights"):
            _call(examples / name, str(BIN / "dbt"), "parse", "--profiles-dir", ".", "--target", "prod")
        try:
            found.airflow.start()
            yield found
        finally:
            found.airflow.stop()


@contextmanager
def _database() -> Iterator[dict[str, str]]:
    """Settings for a database as in production; SQLite, which refuses what meets, where PostgreSQL is not installed."""
    if binaries() is None:
        yield {}
        return
    server = Postgres()
    server.start()
    try:
        url = server.url().replace("postgresql:", "postgresql+psycopg:")
        yield {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": url, "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": url}
    finally:
        server.stop()


def _begin_later(dags: Path) -> None:
    """The example's days without the first two, each of which is a dozen processes; and compaction after two days."""
    begin = "start_date=datetime(2013, 10, {}, tzinfo=UTC)"
    for file, before, now in (
        ("flights.py", begin.format(28), begin.format(30)),
        ("compaction.py", "files=4", "files=2"),
    ):
        text = (dags / file).read_text()
        assert before in text
        (dags / file).write_text(text.replace(before, now))


def _break(examples: Path) -> None:
    """A project of payments with a model that cannot run beside one that can."""
    broken = shutil.copytree(examples / "payments", examples / "broken")
    (broken / "models" / "never.sql").write_text("select nothing_like_it from {{ ref('status_counts') }}")
