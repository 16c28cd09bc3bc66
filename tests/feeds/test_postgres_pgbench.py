"""pgbench runs while a dbt project follows its tables; both the project's process and the server are killed at random.

A transaction of pgbench adds the same amount to an account, a teller and a branch, and notes it in the history. So in
every run's models the sums agree, as long as transactions are whole; and in the end the models are what PostgreSQL
itself answers to the same SQL.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

import dbt_incremental_dd
from tests.servers.postgres import Postgres, binaries

pytestmark = pytest.mark.postgres
TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history")
MODELS = {
    "accounts": "select bid, count(*) as n, sum(abalance) as total from {pgbench_accounts} group by bid",
    "tellers": "select bid, count(*) as n, sum(tbalance) as total from {pgbench_tellers} group by bid",
    "branches": "select bid, bbalance from {pgbench_branches}",
    "history": "select bid, tid, count(*) as n, sum(delta) as total from {pgbench_history} group by bid, tid",
    "richest": "select aid, bid, abalance from {pgbench_accounts} where abalance > 4000",
    "wrong": """
        select 'branch' as what, b.bid as id, b.bbalance as has from {pgbench_branches} b
        left join (select bid, sum(delta) as total from {pgbench_history} group by bid) h on h.bid = b.bid
        where b.bbalance <> coalesce(h.total, 0)
        union all
        select 'teller' as what, t.tid as id, t.tbalance as has from {pgbench_tellers} t
        left join (select tid, sum(delta) as total from {pgbench_history} group by tid) h on h.tid = t.tid
        where t.tbalance <> coalesce(h.total, 0)
        union all
        select 'accounts' as what, a.bid as id, a.total as has
        from (select bid, sum(abalance) as total from {pgbench_accounts} group by bid) a
        left join (
            select o.bid, sum(h.delta) as total from {pgbench_history} h join {pgbench_accounts} o on o.aid = h.aid
            group by o.bid
        ) h on h.bid = a.bid
        where a.total <> coalesce(h.total, 0)""",
}
SCALE = 2
_KILLS = int(os.environ.get("DD_KILLS", "6"))
"""Of the server, half of them before the project's process is killed for the first time."""


class Bench:
    """A project on pgbench's tables; a server, a load and a ``dbt-dd watch`` that come and go."""

    def __init__(self, folder: Path, server: Postgres) -> None:
        self.folder = folder
        self.server = server
        self.environment = {**os.environ, "PG_URL": server.url(), "PYTHONUNBUFFERED": "1"}
        self.load: subprocess.Popen[bytes] | None = None
        self.watcher: subprocess.Popen[bytes] | None = None
        self._write()

    def _write(self) -> None:
        target = {"type": "differential", "schema": "m", "threads": 2, "state_root": str(self.folder / "state")}
        settings = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
        target["server_side_parameters"] = settings
        url = {"env_var": "PG_URL"}
        how = {"meta": {"differential": {"connector": "postgres", "options": {"url": url}}}}
        source = {"name": "bench", "schema": "public", "config": how, "tables": [{"name": name} for name in TABLES]}
        texts = {
            "profiles.yml": yaml.safe_dump({"p": {"target": "dev", "outputs": {"dev": target}}}),
            "dbt_project.yml": yaml.safe_dump(
                {"name": "p", "profile": "p", "models": {"+materialized": "differential"}}
            ),
            "models/sources.yml": yaml.safe_dump({"version": 2, "sources": [source]}),
        }
        for name, sql in MODELS.items():
            texts[f"models/{name}.sql"] = sql.format(**{t: f"{{{{ source('bench', '{t}') }}}}" for t in TABLES})
        for path, text in texts.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)

    def initialize(self) -> None:
        command = self.server.program("pgbench", "-i", "-q", "-s", SCALE, self.server.url())
        subprocess.run(command, check=True, capture_output=True)
        self.query("ALTER TABLE pgbench_history REPLICA IDENTITY FULL")

    def query(self, text: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    def bench(self) -> None:
        """Starts the load."""
        command = self.server.program("pgbench", "-n", "-c", 3, "-T", 3600, "--rate=120", self.server.url())
        quiet = subprocess.DEVNULL
        self.load = subprocess.Popen(command, stdout=quiet, stderr=quiet)

    def watch(self) -> None:
        """Starts the project's process."""
        command = [sys.executable, "-m", "dbt_incremental_dd.cli", "--project-dir", str(self.folder), "watch"]
        with (self.folder / "watch.log").open("ab") as log:
            self.watcher = subprocess.Popen(
                [*command, "--profiles-dir", str(self.folder), "--every", "5 seconds"],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self) -> None:
        """One `dbt run`."""
        folder = str(self.folder)
        code = "import sys; from dbt.cli.main import cli; cli(sys.argv[1:])"
        command = [sys.executable, "-c", code, "run", "--project-dir", folder, "--profiles-dir", folder]
        done = subprocess.run(command, env=self.environment, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + self.told()[-2000:]

    def told(self) -> str:
        return (self.folder / "watch.log").read_text()

    def commits(self) -> int:
        """How often models have changed so far."""
        return self.told().count("history +") if (self.folder / "watch.log").exists() else 0

    def until_committed(self, seconds: float = 240) -> None:
        """Waits for one more run that has changed models."""
        before, deadline = self.commits(), time.monotonic() + seconds
        while self.commits() == before:
            assert time.monotonic() < deadline, self.told()[-4000:]
            time.sleep(0.1)

    def rows(self, name: str) -> Counter[tuple[Any, ...]]:
        table = dbt_incremental_dd.open(str(self.folder / "state"))[f"m.{name}"].as_of()
        names = [column for column in table.column_names if column != "dd_diff"]
        return Counter(tuple(row[column] for column in names) for row in table.to_pylist())

    def check(self) -> None:
        """The models, and that no run's sums have ever disagreed."""
        for name, sql in MODELS.items():
            found = self.query(sql.format(**{table: table for table in TABLES}))
            answer = Counter(tuple(v if isinstance(v, str) else int(v) for v in row) for row in found)
            assert self.rows(name) == answer, name
        log = dbt_incremental_dd.open(str(self.folder / "state"))["m.wrong"].place.log()
        assert log is not None and not log.files, "the sums of some run disagreed"

    def close(self) -> None:
        end(self.watcher)
        end(self.load)


def end(process: subprocess.Popen[bytes] | None) -> None:
    """Kills it, and what it has started."""
    if process is None:
        return
    if process.poll() is None:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.wait()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    if binaries() is None and os.environ.get("CI") != "true":
        pytest.skip("there is no PostgreSQL server")
    server = Postgres(shared_buffers="64MB", fsync="on")
    server.start()
    made = Bench(tmp_path, server)
    try:
        made.initialize()
        yield made
    finally:
        made.close()
        server.stop()


@pytest.mark.timeout(900)
def test_the_pipeline_is_exact_whatever_is_killed(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random()
    bench.bench()
    bench.watch()
    bench.until_committed()
    for is_early in (True, False):
        for _ in range(_KILLS // 2):
            time.sleep(rng.uniform(0.5, 5))
            bench.server.kill()
            time.sleep(rng.uniform(0, 1))
            bench.server.start()
            end(bench.load)
            bench.bench()
            bench.until_committed()
        time.sleep(rng.uniform(0, 5))
        end(bench.watcher)
        bench.watch()
        if is_early:
            time.sleep(rng.uniform(5, 15))
            end(bench.watcher)
            bench.watch()
        bench.until_committed()
    time.sleep(rng.uniform(0, 5))
    end(bench.watcher)
    bench.run()
    end(bench.load)
    bench.run()
    bench.check()
    transactions = bench.query("SELECT count(*) FROM pgbench_history")[0][0]
    with capsys.disabled():
        print(f"\n{transactions} transactions, {bench.commits()} runs with changes")
