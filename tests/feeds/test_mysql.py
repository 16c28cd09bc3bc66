"""Tables of a MariaDB or MySQL server, as their log has them: after every run what is stored is what the server has."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.sources.change_token import change_token
from dbt_incremental_dd.sources.connectors.database_log.consistent_point import TableRequest
from dbt_incremental_dd.sources.connectors.database_log.last_commit import last_commit
from dbt_incremental_dd.sources.connectors.mysql.consistent_point import make
from dbt_incremental_dd.sources.connectors.mysql.spec import MysqlSpec
from tests.feeds.mysql import Feed

pytestmark = pytest.mark.mysql


def test_a_copy_and_then_changes(mysql: Feed) -> None:
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t SELECT seq, seq FROM seq_1_to_10")
    spec = mysql.spec("t")
    assert mysql.run(spec) == {"t": 10}
    mysql.check("t")
    assert mysql.run(spec) == {"t": 0}
    before = change_token(mysql.storage, spec)
    mysql.sql("INSERT INTO t VALUES (11, NULL)", "UPDATE t SET v = 'new' WHERE id = 1", "DELETE FROM t WHERE id = 2")
    assert change_token(mysql.storage, spec) != before
    assert mysql.run(spec) == {"t": 4}
    mysql.check("t")
    mysql.sql("BEGIN", "UPDATE t SET id = id + 100 WHERE id < 5", "INSERT INTO t VALUES (1, 'again')", "COMMIT")
    mysql.sql("BEGIN", "DELETE FROM t", "ROLLBACK", "BEGIN", "SAVEPOINT a", "DELETE FROM t", "ROLLBACK TO a", "COMMIT")
    mysql.run(spec)
    mysql.check("t")
    mysql.sql(
        "UPDATE t SET id = -1 WHERE id = 1", "UPDATE t SET id = 1 WHERE id = -1", "REPLACE INTO t VALUES (1, 'r')"
    )
    mysql.run(spec)
    mysql.check("t")
    assert not mysql.told


def test_identities(mysql: Feed) -> None:
    """By keys of several columns, of text that is equal for the server, of bytes; and by whole rows."""
    mysql.sql(
        "CREATE TABLE two (v text, a int, b varchar(9), c int AS (a + 1) VIRTUAL, d int AS (a + 2) STORED, PRIMARY KEY (b, a))",
        "CREATE TABLE whole (a int, v text)",
        "CREATE TABLE uniq (a int NOT NULL UNIQUE, v text)",
        "INSERT INTO two (v, a, b) VALUES ('one', 1, 'x'), ('two', 1, 'Y')",
        "INSERT INTO whole VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (NULL, NULL), (2, 'y')",
        "INSERT INTO uniq VALUES (1, 'x')",
    )
    specs = mysql.spec("two"), mysql.spec("whole"), mysql.spec("uniq")
    for statements in (
        (),
        (
            "UPDATE two SET v = 'three' WHERE b = 'x'",
            "UPDATE two SET b = 'y' WHERE b = 'Y'",
            "DELETE FROM whole WHERE a = 1 LIMIT 1",
            "UPDATE whole SET v = 'z' WHERE a IS NULL",
            "INSERT INTO whole VALUES (2, 'y')",
            "UPDATE uniq SET a = 2",
        ),
        (
            "DELETE FROM two WHERE b = 'Y'",
            "DELETE FROM whole WHERE a = 2",
            "UPDATE whole SET a = 1",
            "DELETE FROM uniq",
        ),
        ("ALTER TABLE uniq ADD PRIMARY KEY (a)", "INSERT INTO uniq VALUES (5, '')"),
        ("ALTER TABLE uniq DROP PRIMARY KEY, DROP KEY a", "INSERT INTO uniq VALUES (5, '')"),
    ):
        mysql.sql(*statements)
        mysql.run(*specs)
        mysql.check("two", columns="v, a, b")
        mysql.check("whole", "uniq")
    assert len(mysql.told) == 1 and "uniq: copied again: the log has 'ALTER TABLE uniq ADD PRIMARY KEY" in mysql.told[0]


@pytest.mark.parametrize("few", [True, False])
def test_truncate(mysql: Feed, few: bool) -> None:
    mysql.sql("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE c (n int)", "CREATE TABLE `od d``t` (n int)")
    mysql.sql(
        "INSERT INTO a SELECT seq FROM seq_1_to_9", "INSERT INTO c VALUES (1), (1)", "INSERT INTO `od d``t` VALUES (1)"
    )
    specs = mysql.spec("a"), mysql.spec("c"), mysql.spec("odd", table="od d`t")
    mysql.run(*specs)
    if not few:
        mysql.sql("TRUNCATE a", f"TRUNCATE TABLE {mysql.database}.c", "TRUNCATE `od d``t`")
    else:
        mysql.sql("INSERT INTO a VALUES (100)", "INSERT INTO c VALUES (5)", "TRUNCATE a", "/* x */ TRUNCATE c")
        mysql.sql("INSERT INTO a VALUES (3), (50)", "UPDATE a SET id = 4 WHERE id = 3", "INSERT INTO c VALUES (1), (7)")
        mysql.sql("DELETE FROM c WHERE n = 7")
    mysql.run(*specs)
    assert not mysql.told
    mysql.check("a", "c")
    assert few or not mysql.rows("odd")


def test_a_large_transaction_in_little_memory(mysql: Feed) -> None:
    """Of 100,000 rows no more are held than the thresholds say; the others are in files."""
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY, n bigint, v varchar(50))", "CREATE TABLE w (n int)")
    specs = mysql.spec("t"), mysql.spec("w")
    mysql.run(*specs)
    mysql.sql("BEGIN", "INSERT INTO t SELECT seq, seq, repeat('x', 40) FROM seq_1_to_100000", "COMMIT")
    mysql.sql("INSERT INTO w SELECT seq % 100 FROM seq_1_to_20000")
    storage = replace(mysql.storage, thresholds=Thresholds(taken_rows=5000))
    (spec, _) = specs
    assert isinstance(spec, MysqlSpec)
    request = TableRequest(spec, last_commit(storage, spec.name), None)
    spool = make(storage, spec.address, [request]).changes[spec.name].spool
    assert (spool.rows, spool.is_split, spool.table.num_rows) == (100_000, True, 5000)
    spool.remove()
    assert mysql.run(*specs) == {"t": 100_000, "w": 100}
    mysql.sql("UPDATE t SET n = -n WHERE id % 10 = 0", "DELETE FROM t WHERE id % 10 = 1", "DELETE FROM w WHERE n < 50")
    assert mysql.run(*specs) == {"t": 30_000, "w": 50}
    rows = mysql.rows("t")
    assert [(sum(rows.values()), sum(row[1] for row in rows))] == mysql.query("SELECT count(*), sum(n) FROM t")


def test_schema_changes(mysql: Feed) -> None:
    mysql.sql(
        "CREATE TABLE t (id int PRIMARY KEY, n int, e enum('a', 'b'))", "INSERT INTO t VALUES (1, 1, 'a'), (2, 2, 'b')"
    )
    spec = mysql.spec("t")
    mysql.run(spec)
    copies = (
        ("ALTER TABLE t MODIFY n int AFTER e", "INSERT INTO t VALUES (3, 'a', 3)", "ALTER TABLE t MODIFY n int AFTER id"),
        ("INSERT INTO t VALUES (5, 5, 'b')", "ALTER TABLE t ADD m int", "INSERT INTO t VALUES (6, 6, 'a', 6)", "ALTER TABLE t DROP m"),
        ("DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, n int, e enum('a', 'b'))", "INSERT INTO t VALUES (2, 20, 'a'), (9, 9, 'a')"),
        ("RENAME TABLE t TO u", "UPDATE u SET n = 5", "RENAME TABLE u TO t"),
        ("ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 3", "INSERT INTO t VALUES (11, 1, 'a'), (12, 1, 'a')"),
        ("ALTER TABLE t TRUNCATE PARTITION p0", "INSERT INTO t VALUES (13, 1, 'a')"),
    )  # fmt: skip
    for place, statements in enumerate(copies, 1):
        mysql.sql(*statements)
        mysql.run(spec)
        mysql.check("t")
        assert len(mysql.told) == place and "copied again: the log has" in mysql.told[-1]
    harmless = (
        "CREATE INDEX i ON t (n)", "ANALYZE TABLE t", "CREATE VIEW v AS SELECT * FROM t", "DROP VIEW v",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.n = 7", "INSERT INTO t VALUES (20, 1, 'b')",
        "DROP TRIGGER g", "CREATE TABLE other (a int)", "ALTER TABLE other ADD b int", "DROP TABLE other",
    )  # fmt: skip
    mysql.sql(*harmless)
    mysql.run(spec)
    mysql.check("t")
    assert len(mysql.told) == len(copies)
    mysql.sql("ALTER TABLE t ADD m int")
    with pytest.raises(SourceError, match=r"(?s)\.t: .*columns.*m came.*remove its folder"):
        mysql.run(spec)
    mysql.sql("ALTER TABLE t DROP m", "ALTER TABLE t MODIFY n bigint")
    with pytest.raises(SourceError, match="n was integer and is long"):
        mysql.run(spec)
    mysql.sql("ALTER TABLE t MODIFY n int", "ALTER TABLE t MODIFY e enum('b', 'a')")
    mysql.run(spec)
    mysql.check("t")
    mysql.sql("DROP TABLE t")
    with pytest.raises(SourceError, match=r"there is no table"):
        mysql.run(spec)


def test_changes_that_come_by_foreign_keys(mysql: Feed) -> None:
    """MariaDB's InnoDB makes them, and the log does not have them."""
    rules = "ON DELETE CASCADE ON UPDATE CASCADE"
    mysql.sql(
        "CREATE TABLE top (n int, id int PRIMARY KEY)",
        f"CREATE TABLE mid (id int PRIMARY KEY, top int, FOREIGN KEY (top) REFERENCES top (id) {rules})",
        "CREATE TABLE low (id int PRIMARY KEY, mid int, FOREIGN KEY (mid) REFERENCES mid (id) ON DELETE SET NULL)",
        "CREATE TABLE plain (id int PRIMARY KEY, top int, FOREIGN KEY (top) REFERENCES top (id))",
        "INSERT INTO top SELECT seq, seq FROM seq_1_to_9",
        "INSERT INTO mid SELECT seq, seq FROM seq_1_to_9",
        "INSERT INTO low SELECT seq, seq FROM seq_1_to_9",
        "INSERT INTO plain VALUES (5, 5)",
    )
    specs = [mysql.spec(name) for name in ("mid", "low", "plain")]
    mysql.run(*specs)
    mysql.sql("UPDATE top SET n = n + 1", "INSERT INTO top VALUES (20, 20)", "INSERT INTO plain VALUES (6, 6)")
    mysql.run(*specs)
    assert not mysql.told
    for statement, copied in (  # by MariaDB; MySQL's log has them
        ("DELETE FROM top WHERE id = 1", {"mid", "low"}),
        ("UPDATE top SET id = 30 WHERE n = 3", {"mid", "low"}),
        ("DELETE FROM mid WHERE id = 3", {"low"}),
        ("UPDATE mid SET top = 4 WHERE id = 5", set()),
    ):
        mysql.told.clear()
        mysql.sql(statement)
        mysql.run(*specs)
        mysql.check("mid", "low", "plain")
        told = {line.split(".")[1].split(":")[0] for line in mysql.told}
        assert told == (copied if mysql.is_mariadb else set()), statement


def test_transactions_that_are_decided_later_or_logged_as_statements(mysql: Feed) -> None:
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    spec = mysql.spec("t")
    mysql.run(spec)
    other = mysql.connect()
    cursor = other.cursor()

    def xa(number: int, statement: str, *ends: str) -> None:
        for text in (
            f"XA START 'x{number}'",
            statement,
            f"XA END 'x{number}'",
            *(f"{end} 'x{number}'" for end in ends),
        ):
            cursor.execute(text + (" ONE PHASE" if text.startswith("XA COMMIT") and len(ends) == 1 else ""))

    xa(1, "UPDATE t SET n = 10 WHERE id = 1", "XA PREPARE")
    mysql.sql("INSERT INTO t VALUES (3, 3)")
    mysql.run(spec)
    mysql.check("t")
    cursor.execute("XA COMMIT 'x1'")
    mysql.run(spec)
    mysql.check("t")
    assert "XA COMMIT" in mysql.told[-1] and len(mysql.told) == 1
    xa(2, "UPDATE t SET n = 20 WHERE id = 1", "XA PREPARE", "XA ROLLBACK")
    xa(3, "UPDATE t SET n = 30 WHERE id = 2", "XA COMMIT")
    mysql.run(spec)
    mysql.check("t")
    copies = 1 if mysql.is_mariadb else 2
    assert len(mysql.told) == copies and (mysql.is_mariadb or "XA COMMIT ONE PHASE" in mysql.told[-1])
    for statement in (
        "SET binlog_format = STATEMENT",
        "UPDATE t SET n = n + 1",
        "SET binlog_format = ROW",
        "UPDATE t SET n = 5 WHERE id = 3",
    ):
        cursor.execute(statement)
    mysql.run(spec)
    mysql.check("t")
    assert "'UPDATE t SET n = n + 1'" in mysql.told[-1]
    for statement in ("SET binlog_row_image = MINIMAL", "UPDATE t SET n = n + 1", "SET binlog_row_image = FULL"):
        cursor.execute(statement)
    mysql.run(spec)
    mysql.check("t")
    assert "parts of its rows only" in mysql.told[-1] and len(mysql.told) == copies + 2
    mysql.sql("CREATE TEMPORARY TABLE x (a int)")
    mysql.sql(
        "BEGIN",
        "INSERT INTO t VALUES (50, 1)",
        "CREATE TEMPORARY TABLE y (a int)",
        "INSERT INTO t VALUES (51, 1)",
        "ROLLBACK",
    )
    mysql.run(spec)
    mysql.check("t")
    other.close()


def test_compressed_events_and_those_without_checksums(mysql: Feed) -> None:
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    spec = mysql.spec("t")
    mysql.run(spec)
    compression = mysql.either("GLOBAL log_bin_compress", "SESSION binlog_transaction_compression")
    metadata = mysql.either("NO_LOG", "MINIMAL")
    for name, value, usual in (
        (compression, "ON", "OFF"),
        ("GLOBAL binlog_checksum", "NONE", "CRC32"),
        ("GLOBAL binlog_row_metadata", "FULL", metadata),
    ):
        mysql.sql(f"SET {name} = {value}")
        try:
            mysql.sql(
                "REPLACE INTO t SELECT seq, repeat('abc', 500) FROM seq_1_to_50", "UPDATE t SET v = concat(v, id)"
            )
            mysql.sql("DELETE FROM t WHERE id = 7", f"INSERT INTO t VALUES (7, '{name}')")
            mysql.run(spec)
            mysql.check("t")
        finally:
            mysql.sql(f"SET {name} = {usual}")
        mysql.sql("DELETE FROM t WHERE id > 20")
        mysql.run(spec)
        mysql.check("t")
    assert not mysql.told


def test_transactions_are_whole_across_tables_new_ones_included(mysql: Feed) -> None:
    """Money moves between two tables all the time, and others come in while it does."""
    mysql.sql(
        *(f"CREATE TABLE {name} (id int PRIMARY KEY, n bigint)" for name in "abc"),
        *(f"INSERT INTO {name} SELECT seq, 1000 FROM seq_1_to_20" for name in "abc"),
    )
    stop, failures = threading.Event(), []

    def writes(number: int) -> None:
        try:
            connection = mysql.connect(autocommit=False)
            with connection.cursor() as cursor:
                while not stop.is_set():
                    for one, other in ("ab", "bc", "ac"):
                        cursor.execute(f"UPDATE {one} SET n = n - 1 WHERE id = {number}")
                        cursor.execute(f"UPDATE {other} SET n = n + 1 WHERE id = {number + 4}")
                        connection.commit()
            connection.close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=writes, args=(number,)) for number in range(1, 3)]
    for thread in threads:
        thread.start()
    try:
        specs = [mysql.spec(name) for name in "abc"]
        for round in range(4):
            taken = specs if round > 1 else specs[: 2 + round]
            mysql.run(*taken)
            if len(taken) == 3:
                total = sum(row[1] * count for name in "abc" for row, count in mysql.rows(name).items())
                assert total == 60_000, f"round {round}"
                assert len({mysql.progress(name)["lsn"] for name in "abc"}) == 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    mysql.run(*specs)
    mysql.check("a", "b", "c")


def test_sources_that_the_run_was_not_said_to_read_and_two_of_one_table(mysql: Feed) -> None:
    mysql.sql(
        *(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in "ab"),
        "INSERT INTO a VALUES (1)",
        "INSERT INTO b VALUES (1)",
    )
    a, b, again = mysql.spec("a"), mysql.spec("b"), mysql.spec("again", {"id": "bigint"}, table=f"{mysql.database}.a")
    mysql.run(a, b, expected=())
    mysql.check("a", "b")
    mysql.sql("INSERT INTO a VALUES (2)", "INSERT INTO b VALUES (2)")
    mysql.run(a, b, again)
    mysql.sql("INSERT INTO a VALUES (3)", "DELETE FROM a WHERE id = 1")
    mysql.run(a, b, again)
    mysql.check("a", "b")
    assert mysql.rows("again") == mysql.rows("a")
    assert mysql.progress("a")["lsn"] == mysql.progress("again")["lsn"]


def test_quiet_tables_come_along(mysql: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    mysql.sql("CREATE TABLE quiet (id int PRIMARY KEY)", "CREATE TABLE noise (v text)")
    spec = mysql.spec("quiet")
    mysql.run(spec)
    before = mysql.progress("quiet")
    mysql.sql("INSERT INTO noise VALUES ('x')")
    mysql.run(spec)
    assert mysql.progress("quiet") == before
    mysql.sql("FLUSH LOGS")
    mysql.run(spec)
    assert mysql.progress("quiet")["lsn"] > before["lsn"]
    mysql.sql("INSERT INTO quiet VALUES (1)")
    mysql.run(spec)
    mysql.check("quiet")
