"""Collections in tables of a PostgreSQL server: the same rows, whatever changed, and whenever a publisher was ended."""

from __future__ import annotations

import datetime
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from dbt_incremental_dd.api import Collection
from dbt_incremental_dd.cli import main
from dbt_incremental_dd.core.errors import ConfigError, SinkError
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.runtime.compact import compact
from dbt_incremental_dd.sinks.postgres import Sink, _Publisher, publish
from tests.feeds.postgres_fixtures import postgres
from tests.oracle import Table, World
from tests.servers.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["postgres"]
pytestmark = pytest.mark.postgres
ROOT = Path(__file__).parents[2]
DDL = (
    "id INT, name STRING, price DECIMAL(20,4), part DOUBLE, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, ok BOOLEAN, "
    "raw BINARY, tags ARRAY<STRING>, big BIGINT"
)


class Published:
    """A model, and the table that it is published to."""

    def __init__(self, spark: SparkSession, server: Postgres, folder: Path) -> None:
        self.world = World(spark, folder, {"t": Table(DDL)})
        self.world.model("m", "SELECT * FROM {t} WHERE id < 1000")
        self.url = server.url()
        self.table = f"public.{self.world.schema}_m"
        self.sink = Sink(self.table, ("id",), self.url)
        self.connection = psycopg.connect(self.url, autocommit=True)

    @property
    def collection(self) -> Collection:
        return Collection(self.world.storage, f"{self.world.schema}.m")

    def step(self) -> None:
        self.world.step()

    def put(self, *ids: int, name: str | None = "a") -> None:
        """The rows of these ids, whatever they were."""
        self.take(*ids)
        self.world.insert("t", [_row(id, name) for id in ids])

    def take(self, *ids: int) -> None:
        self.world.delete("t", [row for row in self.world.tables["t"].rows if row[0] in ids])

    def check(self) -> None:
        """The table has the model's rows."""
        found = self.connection.execute(f"SELECT * FROM {self.table} ORDER BY id").fetchall()
        wanted = [row for row in self.world.tables["t"].rows if row[0] < 1000]
        assert [_plain(row) for row in found] == [_plain(row) for row in sorted(wanted)]


def _row(id: int, name: str | None) -> tuple[Any, ...]:
    if id % 5 == 0:
        return (id, name, *[None] * 9)
    at = datetime.datetime(2024, 1, 1, 12, id % 60, 0, 123456)
    price, part = Decimal(f"{id}.1234"), float("nan") if id % 7 == 0 else id / 3
    tags = ["x", None, "y\n\t\\"] if id % 2 else []
    return (id, name, price, part, at, at, at.date(), id % 2 == 0, b"\x00\xff" * id, tags, id << 40)


def _plain(row: tuple[Any, ...]) -> list[str]:
    """NaN equals NaN, and an instant is one in any zone."""
    return [
        str(value.astimezone(datetime.UTC)) if isinstance(value, datetime.datetime) and place == 4 else repr(value)
        for place, value in enumerate(row)
    ]


@pytest.fixture
def published(spark: SparkSession, postgres: Postgres, tmp_path: Path) -> Iterator[Published]:
    made = Published(spark, postgres, tmp_path)
    yield made
    made.connection.close()


def test_random_rounds(published: Published) -> None:
    chance = random.Random(1)
    for round in range(12):
        for _ in range(chance.randint(0, 2)):
            published.put(*chance.sample(range(40), chance.randint(0, 8)), name=chance.choice(["a", "ü'\"\\", None]))
            published.take(*chance.sample(range(40), chance.randint(0, 4)))
            published.step()
        if round == 0:
            published.step()
        publish(published.collection, published.sink, once=True)
        published.check()


def test_a_publisher_that_is_ended_goes_on_and_writes_nothing_twice(published: Published) -> None:
    published.put(*range(20))
    published.step()
    for number, point in enumerate(("publish: sent", "publish: committed", "publish: sent")):
        published.put(*range(number, 20, 3), name=f"n{number}")
        published.take(19 - number)
        published.step()
        before = published.connection.execute(f"SELECT to_regclass('{published.table}')").fetchone()
        assert _ended(published, point) == -signal.SIGKILL
        if number:
            assert before is not None
            publish(published.collection, published.sink, once=True)
            published.check()


def _ended(published: Published, point: str) -> int:
    name, root = published.collection.name, published.world.storage.root
    command = [sys.executable, "-m", "dbt_incremental_dd.cli", "--state-root", root, "publish", name, "--once"]
    command += ["--table", published.table, "--key", "id", "--option", f"url={published.url}"]
    environment = {**os.environ, "DD_STOP_AT": point}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def test_a_second_publisher_stops_the_first(published: Published) -> None:
    published.put(1, 2)
    published.step()
    publish(published.collection, published.sink, once=True)
    with psycopg.connect(published.url, autocommit=True) as connection:
        first = _Publisher(published.collection, published.sink, connection)
        published.put(3)
        published.step()
        with first.subscription() as subscription:
            batch = subscription.poll()
            publish(published.collection, published.sink, once=True)
            assert batch is not None
            with pytest.raises(SinkError, match="another publisher writes"):
                first.write(batch)
    published.check()


def test_what_lost_its_history_is_written_anew(published: Published) -> None:
    published.put(*range(10))
    published.step()
    publish(published.collection, published.sink, once=True)
    for path in (Path(published.world.storage.root) / "collections").glob("*/holds/*"):
        path.unlink()
    published.take(1, 2)
    published.put(3, name="other")
    published.step()
    published.step()
    list(compact(LazySession.of(published.world.spark), published.world.storage, [published.collection.name], 0))
    publish(published.collection, published.sink, once=True)
    published.check()


def test_a_table_that_was_dropped_is_written_anew(published: Published) -> None:
    published.put(*range(10))
    published.step()
    publish(published.collection, published.sink, once=True)
    published.connection.execute(f"DROP TABLE {published.table}")
    published.put(3, name="other")
    published.step()
    publish(published.collection, published.sink, once=True)
    published.check()


def test_what_does_not_fit_is_refused(published: Published) -> None:
    published.put(1, 2)
    published.world.insert("t", [_row(2, "twice")])
    published.step()
    with pytest.raises(ConfigError, match="key id = 2 has several rows"):
        publish(published.collection, published.sink, once=True)
    with pytest.raises(ConfigError, match="the key of what is published is nope"):
        publish(published.collection, Sink(published.table, ("nope",), published.url), once=True)
    with pytest.raises(SinkError, match="cannot be published to table"):
        publish(published.collection, Sink("nowhere.t", ("id",), published.url), once=True)
    with pytest.raises(SinkError) as caught:
        publish(published.collection, Sink("t", ("id",), "postgresql://u:secret@127.0.0.1:1/x"), once=True)
    assert "secret" not in str(caught.value)
    published.connection.execute("CREATE TABLE IF NOT EXISTS public.foreign_rows AS SELECT 1 AS id")
    other = Sink("public.foreign_rows", ("id",), published.url)
    with pytest.raises(ConfigError, match="has no column name"):
        publish(published.collection, other, once=True)
    narrow = "CREATE TABLE public.own_rows (id int PRIMARY KEY, name text, price numeric, part float, at timestamptz, "
    narrow += "local timestamp, day date, ok boolean, raw bytea, tags jsonb, big bigint)"
    published.connection.execute(narrow)
    published.connection.execute("INSERT INTO public.own_rows (id) VALUES (77)")
    with pytest.raises(SinkError, match=r"has rows, and .* was never published to it"):
        publish(published.collection, Sink("public.own_rows", ("id",), published.url), once=True)
    assert main(["--state-root", published.world.storage.root, "publish", "m", "--table", "t", "--key", "id"]) == 1
