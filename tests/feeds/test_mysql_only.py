"""What MySQL has and MariaDB has not: in tables, and in the log."""

from __future__ import annotations

import threading
import time

import pytest

from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.sources.connectors.mysql import payload, server
from dbt_incremental_dd.sources.connectors.mysql.binlog import HEADER, Event, Malformed
from tests.feeds.mysql import Feed
from tests.feeds.mysql_fixtures import only_mysql
from tests.servers.mysql import MySQL

pytestmark = pytest.mark.mysql


@only_mysql
@pytest.mark.parametrize("is_shown", [True, False])
def test_keys_that_nobody_sees(mysql: Feed, is_shown: bool) -> None:
    """A table without a key can have been given one; whether the server shows it is a setting of its own."""
    mysql.sql(f"SET GLOBAL show_gipk_in_create_table_and_information_schema = {is_shown}")
    try:
        mysql.sql(
            "SET sql_generate_invisible_primary_key = ON",
            "CREATE TABLE t (n int, v text, h int INVISIBLE, g int AS (n + 1))",
            "INSERT INTO t (n, v, h) VALUES (1, 'x', 7), (1, 'x', 7), (NULL, NULL, NULL)",
        )
        spec, columns = mysql.spec("t"), "my_row_id, n, v, h"
        mysql.run(spec)
        mysql.check("t", columns=columns)
        mysql.sql(
            "UPDATE t SET v = 'y' WHERE n = 1 LIMIT 1", "DELETE FROM t WHERE n IS NULL", "INSERT INTO t (h) VALUES (8)"
        )
        assert mysql.run(spec) == {"t": 4}
        mysql.check("t", columns=columns)
        assert not mysql.told
    finally:
        mysql.sql("SET GLOBAL show_gipk_in_create_table_and_information_schema = ON")


@only_mysql
def test_columns_that_are_no_columns(mysql: Feed) -> None:
    """Indexes of expressions have some of their own; generated ones may be of any type."""
    mysql.sql(
        "CREATE TABLE t (id int PRIMARY KEY, j json, v varchar(20), k int AS (j->'$.k') STORED, d json AS (j->'$.d') STORED,"
        " p point AS (POINT(id, 1)) STORED SRID 0, w vector(2) AS (STRING_TO_VECTOR('[1,2]')) STORED, z int DEFAULT (1 + 1),"
        " INDEX ((CAST(j->'$.tags' AS unsigned ARRAY))), INDEX ((LOWER(v))), INDEX (k), y int)",
        """INSERT INTO t (id, j, v) VALUES (1, '{"k": 1, "tags": [1, 2], "d": [1.5]}', 'X')""",
    )
    spec, columns = mysql.spec("t"), "id, j, v, z, y"
    mysql.run(spec)
    mysql.sql("INSERT INTO t (id, j, v, y) VALUES (2, JSON_OBJECT('k', 5, 'tags', JSON_ARRAY(7)), NULL, 3)")
    mysql.sql("UPDATE t SET v = 'z', y = 9 WHERE id = 1")
    mysql.run(spec)
    mysql.check("t", columns=columns)
    assert not mysql.told
    mysql.sql("ALTER TABLE t ADD INDEX ((UPPER(v))), ALGORITHM = INPLACE", "UPDATE t SET v = 'u'")
    mysql.run(spec)
    mysql.check("t", columns=columns)


@only_mysql
def test_vectors_are_refused(mysql: Feed) -> None:
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY, w vector(3))")
    with pytest.raises(SourceError, match=r"column w of .* is vector\(3\), whose values are not read"):
        mysql.run(mysql.spec("t"))


@only_mysql
def test_tables_that_are_changed_at_once(mysql: Feed) -> None:
    """By columns that come and go without the rows' being written anew, and tables made of a query."""
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    spec = mysql.spec("t")
    mysql.run(spec)
    mysql.sql("INSERT INTO t VALUES (3, 3)", "ALTER TABLE t ADD m int DEFAULT 7 FIRST, ALGORITHM = INSTANT")
    mysql.sql("INSERT INTO t VALUES (4, 4, 4)", "ALTER TABLE t DROP m, ALGORITHM = INSTANT", "UPDATE t SET n = 9")
    mysql.run(spec)
    mysql.check("t")
    assert len(mysql.told) == 1 and "copied again: the log has 'ALTER TABLE t ADD m" in mysql.told[0]
    mysql.sql("CREATE TABLE other SELECT * FROM t", "INSERT INTO t VALUES (5, 5)")
    mysql.run(spec)
    mysql.check("t")
    mysql.sql("DROP TABLE t", "CREATE TABLE t (PRIMARY KEY (id)) SELECT * FROM other", "DELETE FROM t WHERE id = 1")
    mysql.run(spec)
    mysql.check("t")
    mysql.sql("ALTER TABLE t ADD m int, ALGORITHM = INSTANT")
    with pytest.raises(SourceError, match=r"(?s)\.t: .*columns.*m came.*remove its folder"):
        mysql.run(spec)


@only_mysql
def test_transactions_with_gtids_and_without(mysql: Feed) -> None:
    """Each begins with another kind of event, as do those whose GTID has a tag."""
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t VALUES (1, 1)")
    spec = mysql.spec("t")
    mysql.run(spec)
    modes = ["ON", "ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"]
    assert mysql.query("SELECT @@gtid_mode") == [(modes[0],)]

    def change() -> None:
        mysql.sql("INSERT INTO t SELECT max(id) + 1, 2 FROM t", "BEGIN", "UPDATE t SET n = n + 5", "SAVEPOINT s")
        mysql.sql("DELETE FROM t", "ROLLBACK TO s", "COMMIT", "SET binlog_transaction_compression = ON")
        mysql.sql("UPDATE t SET n = n + id", "SET binlog_transaction_compression = OFF")
        mysql.run(spec)
        mysql.check("t")

    change()
    mysql.sql("SET gtid_next = 'AUTOMATIC:tag'")
    change()
    mysql.sql("SET gtid_next = 'AUTOMATIC'", *(f"SET GLOBAL gtid_mode = {mode}" for mode in modes[1:]))
    try:
        change()
    finally:
        mysql.sql(*(f"SET GLOBAL gtid_mode = {mode}" for mode in reversed(modes[:-1])))
    assert not mysql.told


@only_mysql
def test_a_copy_beside_a_statement_that_runs_for_long(mysql: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy waits for it, and those who write to other tables do not."""
    monkeypatch.setattr(server, "_LOCK_SECONDS", 1)
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE TABLE other (n int)")
    held_up: list[float] = []

    def read() -> None:
        with mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT sleep(3) FROM t LIMIT 1")

    def write() -> None:
        with mysql.connect() as connection, connection.cursor() as cursor:
            while reader.is_alive():
                began = time.monotonic()
                cursor.execute("INSERT INTO other VALUES (1)")
                held_up.append(time.monotonic() - began)
                time.sleep(0.05)

    reader, writer = threading.Thread(target=read), threading.Thread(target=write)
    reader.start()
    time.sleep(0.3)
    writer.start()
    mysql.run(mysql.spec("t"))
    assert not reader.is_alive()
    writer.join()
    assert 0.5 < max(held_up) < 2
    monkeypatch.setattr(server, "_LOCK_PATIENCE", 0.5)
    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.3)
    with pytest.raises(SourceError, match="locked for too long"):
        mysql.run(mysql.spec("again", table="t"))
    reader.join()
    mysql.run(mysql.spec("t"))
    mysql.check("t")


@only_mysql
def test_passwords_and_certificates(mysql: Feed) -> None:
    """Elsewhere than on this machine connections use TLS, with the server's own certificate if none is asked for. A
    password goes over others by the server's public key."""
    secured = {"host": MySQL.other_host, "user": "secured", "password": "s3cret/ü"}
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "DROP USER IF EXISTS secured, plain")
    for user, needed in (("secured", "REQUIRE SSL"), ("plain", "")):
        mysql.sql(
            f"CREATE USER {user} IDENTIFIED WITH caching_sha2_password BY 's3cret/ü' {needed}",
            f"GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user}",
        )
    mysql.run(mysql.spec("t", options=secured))
    mysql.check("t")
    mysql.run(mysql.spec("again", table="t", options={**secured, "host": mysql.server.host, "user": "plain"}))
    assert mysql.rows("again") == mysql.rows("t")
    authority = mysql.server.data / "ca.pem"  # its certificate names no host
    for options in ({"ssl_ca": str(authority)}, {"host": mysql.server.host}):
        with pytest.raises(SourceError, match=r"(?s)the server at .* cannot be reached: .*(certificate|denied)"):
            mysql.run(mysql.spec("new", table="t", options={**secured, **options}))


@only_mysql
def test_a_large_transaction_that_is_compressed(mysql: Feed) -> None:
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY, v varchar(50))", "CREATE TABLE w (n int)")
    specs = mysql.spec("t"), mysql.spec("w")
    mysql.run(*specs)
    mysql.sql("SET GLOBAL binlog_transaction_compression = ON")
    try:
        mysql.sql("SET binlog_transaction_compression = ON", "BEGIN", "INSERT INTO w VALUES (1), (1)")
        mysql.sql("INSERT INTO t SELECT seq, repeat('x', 40) FROM seq_1_to_50000", "DELETE FROM w LIMIT 1", "COMMIT")
        assert mysql.run(*specs) == {"t": 50_000, "w": 1}
        mysql.sql("DELETE FROM t WHERE id > 10", "TRUNCATE w", "BEGIN", "INSERT INTO w VALUES (2)", "ROLLBACK")
        mysql.run(*specs)
    finally:
        mysql.sql("SET GLOBAL binlog_transaction_compression = OFF")
    mysql.check("t", "w")
    assert not mysql.told


def test_what_is_no_compressed_transaction() -> None:
    """It is told, not taken for an empty one."""
    event = HEADER.pack(0, 2, 1, HEADER.size + 3, 0, 0) + b"abc"
    plain = b"\x02\x03\xfc\xff\x00\x00"
    (found,) = payload.events(Event("log.1", 40, 77, 0, plain + event))
    assert (found.kind, found.end, found.body) == (2, 77, b"abc")
    for body, words in (
        (b"\x02\x01\x07\x00", "not known: 7"),
        (plain + event[:-1], "ends within an event"),
        (b"\x00no zstd at all", "cannot be decompressed"),
    ):
        with pytest.raises(Malformed, match=words):
            list(payload.events(Event("log.1", 40, 77, 0, body)))
