"""Random statements in random transactions over several tables; processes and servers that end anywhere."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.sources.connectors.database_log import spool
from tests.feeds.postgres import Feed
from tests.servers.postgres import Postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.postgres
ROOT = Path(__file__).parents[2]
DDL = (
    "CREATE TABLE one (id int PRIMARY KEY, n bigint, v text)",
    "CREATE TABLE two (a int NOT NULL, b text NOT NULL, n numeric(12,2), at timestamptz, UNIQUE (b, a))",
    "ALTER TABLE two REPLICA IDENTITY USING INDEX two_b_a_key",
    "CREATE TABLE bag (n int, v text)",
    "ALTER TABLE bag REPLICA IDENTITY FULL",
    "CREATE TABLE part (id int, k int, v text, PRIMARY KEY (id, k)) PARTITION BY LIST (k)",
    *(f"CREATE TABLE part{k} PARTITION OF part FOR VALUES IN ({k})" for k in range(3)),
)
TABLES = ("one", "two", "bag", "part")


def statement(rng: random.Random) -> str:
    """One change of one table; keys are few, so that they meet."""
    i, j, n = rng.randrange(30), rng.randrange(30), rng.randrange(1000)
    large = f"(SELECT string_agg(md5((i * {n})::text), '') FROM generate_series(1, 300) i)"
    v = rng.choice(["NULL", f"'v{n}'", f"'v{n % 3}'", large])
    by_table = {
        "one": [
            f"INSERT INTO one VALUES ({i}, {n}, {v}) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
            f"UPDATE one SET n = {n} WHERE id % 5 = {i % 5}",
            f"UPDATE one SET v = {v} WHERE id = {i}",
            f"UPDATE one SET id = {j} WHERE id = {i} AND NOT EXISTS (SELECT FROM one WHERE id = {j})",
            f"DELETE FROM one WHERE id = {i}",
        ],
        "two": [
            f"INSERT INTO two VALUES ({i % 5}, '{j % 4}', {n}.5, now()) ON CONFLICT DO NOTHING",
            f"UPDATE two SET n = n + 0.01 WHERE a = {i % 5}",
            f"UPDATE two SET b = b || 'x' WHERE a = {i % 5} AND length(b) < 4",
            f"DELETE FROM two WHERE a = {i % 5} OR length(b) > 3",
        ],
        "bag": [
            f"INSERT INTO bag SELECT {i % 3}, {v} FROM generate_series(1, {j % 4})",
            f"UPDATE bag SET n = {j % 3} WHERE n = {i % 3}",
            "DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag LIMIT 3)",
        ],
        "part": [
            f"INSERT INTO part VALUES ({i}, {j % 3}, {v}) ON CONFLICT DO NOTHING",
            f"UPDATE part SET k = (k + 1) % 3 WHERE id = {i} AND NOT EXISTS (SELECT FROM part o WHERE o.id = {i} AND o.k <> part.k)",
            f"UPDATE part SET v = {v} WHERE id % 3 = {i % 3}",
            f"DELETE FROM part WHERE id = {i}",
        ],
    }
    if rng.random() < 0.015:
        return f"TRUNCATE {', '.join(rng.sample(TABLES, rng.randint(1, 2)))}"
    return rng.choice(by_table[rng.choice(TABLES)])


def transaction(rng: random.Random) -> str:
    """Some changes, some of them taken back."""
    parts = []
    for _ in range(rng.randint(1, 6)):
        parts.append(statement(rng))
        if rng.random() < 0.2:
            parts += ["SAVEPOINT s", statement(rng), rng.choice(["ROLLBACK TO s", "RELEASE s"])]
    return f"BEGIN; {'; '.join(parts)}; {rng.choice(['COMMIT'] * 9 + ['ROLLBACK'])}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_transactions(feed: Feed, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = random.Random(seed)
    feed.sql(*DDL, *(statement(rng) for _ in range(40)))
    specs = [feed.spec(name) for name in TABLES]
    if seed == 3:  # many put aside all the time
        feed.storage = replace(feed.storage, thresholds=Thresholds(taken_rows=4))
        monkeypatch.setattr(spool, "MOST_BYTES", 5_000)
    for round in range(5 if seed == 3 else 12):
        taken = specs if round else specs[:2]
        feed.run(*taken)
        feed.check(*(spec.name.split(".")[1] for spec in taken))
        feed.sql(*(transaction(rng) for _ in range(rng.choice([1, 5, 30]))))


def worker(feed: Feed, stop_at: str = "", noted_in: str = "") -> int:
    """A process that takes all tables in."""
    environment = {**os.environ, "DD_STOP_AT": stop_at, "DD_POINTS": noted_in}
    command = [sys.executable, "-m", "tests.feeds.postgres_worker", feed.storage.root, feed.url, *TABLES]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-3000:]
    return done.returncode


def test_a_run_that_is_killed_loses_nothing(feed: Feed) -> None:
    """Where it has just made the slot, copied, read the log, committed some of the tables, advanced the slot."""
    rng = random.Random(5)
    feed.sql(*DDL, *(statement(rng) for _ in range(40)))
    for point in ("slot: made", "source: committed#2"):
        assert worker(feed, point) == -signal.SIGKILL, point
        feed.sql(*(transaction(rng) for _ in range(5)))
    specs = [feed.spec(name) for name in TABLES]
    # One row of each, so that all of them come further than the slot is.
    feed.sql("INSERT INTO one VALUES (99); INSERT INTO two VALUES (99, ''); INSERT INTO bag VALUES (99)")
    feed.sql("INSERT INTO part VALUES (99, 1)")
    feed.run(*specs)
    feed.check(*TABLES)
    for point in ("slot: advanced", "log: read", "source: committed#2"):
        feed.sql(*(transaction(rng) for _ in range(10)))
        assert worker(feed, point) == -signal.SIGKILL, point
    feed.run(*specs)
    feed.check(*TABLES)


def test_a_server_that_is_killed_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(6)
    server = Postgres()
    server.start()
    try:
        feed = Feed(spark, server, tmp_path)
        feed.sql(*DDL, *(statement(rng) for _ in range(40)))
        specs = [feed.spec(name) for name in TABLES]
        for _ in range(4):
            feed.run(*specs)
            feed.check(*TABLES)
            feed.sql(*(transaction(rng) for _ in range(10)))
            feed.connection.execute(f"BEGIN; {statement(rng)}")
            server.kill()
            with pytest.raises(SourceError, match="cannot be reached"):
                feed.run(*specs)
            server.start()
            feed.connection = feed.connect()
        feed.run(*specs)
        feed.check(*TABLES)
    finally:
        server.stop()


def test_points_are_those_of_the_package() -> None:
    """Names that tests end processes at."""
    package = ROOT / "dbt_incremental_dd"
    known = {name for path in package.rglob("*.py") for name in re.findall(r'reached\("([^"]+)"\)', path.read_text())}
    used = set(re.findall(r'"((?:slot|table|log|source): [a-z ]+)(?:#\d)?"', Path(__file__).read_text()))
    assert used <= known
