"""Random statements in random transactions over several tables; processes and servers that end anywhere."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dbt_incremental_dd.core.errors import SourceError
from tests.feeds.mysql import Feed

pytestmark = pytest.mark.mysql
ROOT = Path(__file__).parents[2]
DDL = (
    "CREATE TABLE one (id int PRIMARY KEY, n bigint, v text)",
    "CREATE TABLE two (a int NOT NULL, b varchar(20) NOT NULL, n decimal(12,2), at timestamp(3) NULL, PRIMARY KEY (b, a))",
    "CREATE TABLE bag (n int, v text)",
    "CREATE TABLE part (id int, k int, v text, PRIMARY KEY (id, k)) PARTITION BY LIST (k) "
    "(PARTITION p0 VALUES IN (0), PARTITION p1 VALUES IN (1), PARTITION p2 VALUES IN (2))",
    "CREATE TABLE kinds (id bigint unsigned PRIMARY KEY, d decimal(20,6), t time(6), y year, dt datetime(6), da date, "
    "e enum('a', 'b', 'c'), s set('x', 'y', 'z'), b bit(17), l varchar(30) CHARACTER SET latin1, tu tinyint unsigned)",
    "CREATE TABLE noise (n int)",
)
TABLES = ("one", "two", "bag", "part", "kinds")


def kinds(rng: random.Random) -> str:
    """Values of all columns of ``kinds`` but the first."""
    day = f"{rng.randrange(1901, 9999):04}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
    clock = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(10**6):06}"
    values = [
        f"{rng.choice(['-', ''])}{rng.randrange(10 ** rng.randint(1, 14))}.{rng.randrange(10**6):06}",
        f"'{rng.choice(['-', ''])}{rng.randrange(838)}:{clock[3:]}'",
        str(rng.randrange(1901, 2156)),
        f"'{day} {clock}'",
        f"'{day}'",
        f"'{rng.choice('abc')}'",
        f"'{','.join(rng.sample('xyz', rng.randrange(4)))}'",
        str(rng.randrange(1 << 17)),
        f"'{''.join(rng.choice('aäöß€ x') for _ in range(rng.randrange(9)))}'",
        str(rng.randrange(256)),
    ]
    return ", ".join("NULL" if rng.random() < 0.1 else value for value in values)


def statement(rng: random.Random) -> str:
    """One change of one table; keys are few, so that they meet."""
    i, j, n = rng.randrange(30), rng.randrange(30), rng.randrange(1000)
    v = rng.choice(["NULL", f"'v{n}'", f"'v{n % 3}'", f"repeat('ü{n}', 900)"])
    by_table = {
        "one": [
            f"INSERT INTO one VALUES ({i}, {n}, {v}) ON DUPLICATE KEY UPDATE n = values(n)",
            f"UPDATE one SET n = {n} WHERE id % 5 = {i % 5}",
            f"UPDATE one SET v = {v} WHERE id = {i}",
            f"UPDATE IGNORE one SET id = {j} WHERE id = {i}",
            f"DELETE FROM one WHERE id = {i}",
            f"REPLACE INTO one VALUES ({i}, {n}, {v}), ({j}, {n}, 'r')",
        ],
        "two": [
            f"INSERT IGNORE INTO two VALUES ({i % 5}, '{j % 4}', {n}.5, now(3))",
            f"UPDATE two SET n = n + 0.01 WHERE a = {i % 5}",
            f"UPDATE IGNORE two SET b = concat(b, 'x') WHERE a = {i % 5} AND length(b) < 4",
            f"DELETE FROM two WHERE a = {i % 5} OR length(b) > 3",
        ],
        "bag": [
            f"INSERT INTO bag SELECT {i % 3}, {v} FROM seq_0_to_{j % 4}",
            f"UPDATE bag SET n = {j % 3} WHERE n = {i % 3}",
            "DELETE FROM bag LIMIT 3",
        ],
        "part": [
            f"INSERT IGNORE INTO part VALUES ({i}, {j % 3}, {v})",
            f"UPDATE IGNORE part SET k = (k + 1) % 3 WHERE id = {i}",
            f"UPDATE part SET v = {v} WHERE id % 3 = {i % 3}",
            f"DELETE FROM part WHERE id = {i}",
        ],
        "kinds": [f"REPLACE INTO kinds VALUES ({i}, {kinds(rng)})", f"DELETE FROM kinds WHERE y % 7 = {i % 7}"],
    }  # fmt: skip
    return rng.choice(by_table[rng.choice(TABLES)])


def transaction(rng: random.Random) -> list[str]:
    """Some changes, some of them taken back; beside them what a server has to do else."""
    parts = ["BEGIN"]
    for _ in range(rng.randint(1, 6)):
        parts.append(statement(rng))
        if rng.random() < 0.2:
            parts += ["SAVEPOINT s", statement(rng), rng.choice(["ROLLBACK TO s", "SELECT 1"])]
    parts.append(rng.choice(["COMMIT"] * 9 + ["ROLLBACK"]))
    others = ["ALTER TABLE noise MODIFY n bigint", "ALTER TABLE noise MODIFY n int"]
    others += ["FLUSH LOGS", "INSERT INTO noise (n) VALUES (1)", f"TRUNCATE {rng.choice(TABLES)}"]
    return [*parts, *rng.choice([[], [], [rng.choice(others)]])]


def work(rng: random.Random, mysql: Feed, count: int) -> None:
    """Some transactions; of MySQL's some are compressed."""
    compression = rng.choice(["ON", "OFF"])
    setting = mysql.either("SELECT 1", f"SET binlog_transaction_compression = {compression}")
    mysql.sql("SET sql_mode = ''", setting, *(text for _ in range(count) for text in transaction(rng)))


@pytest.mark.parametrize("seed", [1, 2])
def test_random_transactions(mysql: Feed, seed: int) -> None:
    rng = random.Random(seed)
    mysql.sql(*DDL, "SET sql_mode = ''", *(statement(rng) for _ in range(40)))
    specs = [mysql.spec(name) for name in TABLES]
    for round in range(8):
        taken = specs if round else specs[:2]
        mysql.run(*taken)
        check(mysql, [spec.name.split(".")[1] for spec in taken])
        work(rng, mysql, rng.choice([1, 5, 30]))
    assert not mysql.told


def check(mysql: Feed, names: list[str] | tuple[str, ...] = TABLES) -> None:
    """What is stored is what the server has; PyMySQL has other types for some."""
    for name in names:
        if name == "kinds":
            parts = "id, d, cast(t AS char), y, dt, da, e, s, b + 0, l, tu"
            mysql.check(name, columns=parts)
        elif name == "two":
            own = {(*row[:3], row[3] and row[3].replace(tzinfo=None)): count for row, count in mysql.rows(name).items()}
            assert own == mysql.actual(name)
        else:
            mysql.check(name)


def worker(mysql: Feed, stop_at: str) -> int:
    """A process that takes all tables in."""
    environment = {**os.environ, "DD_STOP_AT": stop_at}
    own = [mysql.storage.root, str(mysql.server.port), mysql.database, *TABLES]
    command = [sys.executable, "-m", "tests.feeds.mysql_worker", *own]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-3000:]
    return done.returncode


def test_a_run_that_is_killed_loses_nothing(mysql: Feed) -> None:
    """Where it has just copied, committed some of the tables, or read the log."""
    rng = random.Random(5)
    mysql.sql(*DDL, "SET sql_mode = ''", *(statement(rng) for _ in range(40)))
    for point in ("table: copied", "source: committed#2", "log: read"):
        assert worker(mysql, point) == -signal.SIGKILL, point
        work(rng, mysql, 10)
    specs = [mysql.spec(name) for name in TABLES]
    mysql.run(*specs)
    check(mysql)


def test_servers_that_end_and_logs_that_are_purged_or_reset(mysql: Feed) -> None:
    rng = random.Random(6)
    mysql.sql(*DDL, "SET sql_mode = ''", *(statement(rng) for _ in range(40)))
    specs = [mysql.spec(name) for name in TABLES]
    for is_killed in (True, False):
        mysql.run(*specs)
        check(mysql)
        work(rng, mysql, 10)
        mysql.sql("BEGIN", statement(rng))
        if is_killed:
            mysql.server.kill()
            with pytest.raises(SourceError, match="cannot be reached"):
                mysql.run(*specs)
            mysql.server.start()
        else:
            mysql.server.restart()
        mysql.connection = mysql.connect()
        work(rng, mysql, 2)
    mysql.run(*specs[:3])
    work(rng, mysql, 5)
    mysql.sql("FLUSH LOGS")
    (*_, (last, *_)) = mysql.query("SHOW BINARY LOGS")
    assert not mysql.told
    mysql.sql(f"PURGE BINARY LOGS TO '{last}'")
    mysql.run(*specs)
    check(mysql)
    assert mysql.told and all("copied again: the server has purged" in line for line in mysql.told)
    work(rng, mysql, 5)
    mysql.run(*specs)
    check(mysql)
    time.sleep(1.1)  # files of a log are told apart by the second in which they were begun
    mysql.sql("INSERT INTO one VALUES (77, 1, 'x')", mysql.either("RESET MASTER", "RESET BINARY LOGS AND GTIDS"))
    with pytest.raises(SourceError, match=r"(?s)the log ends before .*RESET MASTER.*remove its folder"):
        mysql.run(*specs)
    number, offset = divmod(mysql.progress("one")["lsn"], 1 << 32)
    longer = [f"REPLACE INTO one VALUES (78, {place}, repeat('x', 60000))" for place in range(offset // 60000 + 1)]
    mysql.sql(*["FLUSH LOGS"] * (number - 1), *longer)
    with pytest.raises(SourceError, match=r"(?s)the log was reset.*remove its folder"):
        mysql.run(*specs)
    mysql.storage.collection(f"{mysql.schema}.one").remove()
    mysql.run(specs[0])
    check(mysql, ["one"])


def test_points_are_those_of_the_package() -> None:
    """Names that tests end processes at."""
    package = ROOT / "dbt_incremental_dd"
    known = {name for path in package.rglob("*.py") for name in re.findall(r'reached\("([^"]+)"\)', path.read_text())}
    used = set(re.findall(r'"((?:snapshot|table|log|source): [a-z ]+)(?:#\d)?"', Path(__file__).read_text()))
    assert used and used <= known
