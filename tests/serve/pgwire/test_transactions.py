"""Transactions read as of one time; cursors live in them; errors end them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
import pytest

from tests.serve.pgwire.conftest import Server
from tests.subscribe.stored import Stored

Connection = psycopg.Connection[Any]


def test_a_transaction_reads_as_of_one_time(server: Server, stored: Stored) -> None:
    with server.connect(autocommit=False) as one, server.connect() as other:
        one.execute("select 1")
        stored.commit({40: Counter({(4, "d"): 1})}, 41)
        count = "select count(*) from kept"
        assert one.execute(f"{count} as of 12").fetchone() == (3,)
        assert one.execute(count).fetchone() == (4,)
        stored.commit({50: Counter({(5, "e"): 1})}, 51)
        assert other.execute(count).fetchone() == (5,)
        for _ in range(2):
            assert one.execute(count).fetchone() == (4,)
        assert one.execute(f"{count} as of 50").fetchone() == (5,)
        one.commit()
        assert one.execute(count).fetchone() == (5,)


def test_after_an_error_nothing_goes_on(server: Server) -> None:
    with server.connect(autocommit=False) as connection:
        connection.execute("select 1")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("select nosuch")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        for sql in ("select 1", "show search_path", "begin", "savepoint s"):
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                connection.execute(sql)
        connection.rollback()
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert connection.execute("select 1").fetchone() == (1,)
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("select nosuch")
        assert connection.execute("commit").statusmessage == "ROLLBACK"


def test_savepoints(server: Server) -> None:
    with server.connect() as connection, connection.transaction():
        with pytest.raises(psycopg.errors.UndefinedColumn), connection.transaction():
            connection.execute("select nosuch")
        with connection.transaction(savepoint_name="of mine"):
            assert connection.execute("select 1").fetchone() == (1,)
        assert connection.execute("select 2").fetchone() == (2,)
        with pytest.raises(psycopg.errors.InvalidSavepointSpecification):
            connection.execute('rollback to "of mine"')
        connection.execute("rollback")


def test_warnings(connection: Connection) -> None:
    said: list[object] = []
    connection.add_notice_handler(lambda notice: said.append(notice.sqlstate))
    assert connection.execute("rollback").statusmessage == "ROLLBACK"
    connection.execute("begin")
    connection.execute("begin")
    assert said == ["25P01", "25001"]


def test_cursors_of_the_server(server: Server, stored: Stored) -> None:
    with server.connect(autocommit=False) as connection:
        cursor = connection.cursor("of mine")
        cursor.execute("select i from range(25000) t(i) where i >= %s", [10])
        cursor.itersize = 7000
        other = connection.cursor("other", binary=True)
        other.execute("select k, v from kept order by k")
        assert cursor.fetchone() == (10,) and cursor.fetchmany(2) == [(11,), (12,)]
        assert other.fetchmany(2) == [(1, "a"), (2, "b")]
        held = connection.execute("select name, statement from pg_cursors order by name").fetchall()
        assert [name for name, _ in held] == ["of mine", "other"] and "from kept" in held[1][1]
        assert sum(1 for _ in cursor) == 25000 - 13
        assert other.fetchall() == [(3, None)] and other.fetchall() == []
        other.close()
        with pytest.raises(psycopg.errors.DuplicateCursor):
            connection.execute('declare "of mine" cursor for select 1')
        connection.rollback()
        with pytest.raises(psycopg.errors.InvalidCursorName):
            connection.execute('fetch 1 from "of mine"')


def test_cursors_that_outlive_their_transaction(server: Server) -> None:
    with server.connect() as connection:
        cursor = connection.cursor("held", withhold=True)
        cursor.execute("select i from range(5) t(i)")
        connection.execute("begin")
        connection.execute("declare short cursor for select 1")
        connection.execute("declare long cursor with hold for select 2")
        connection.execute("commit")
        connection.execute("begin")
        connection.execute("declare gone cursor with hold for select 3")
        connection.execute("rollback")
        assert connection.execute("select name from pg_cursors order by 1").fetchall() == [("held",), ("long",)]
        assert cursor.fetchall() == [(i,) for i in range(5)]
        assert connection.execute("fetch all long").fetchall() == [(2,)]
        connection.execute("close all")
        assert connection.execute("select count(*) from pg_cursors").fetchone() == (0,)


def test_fetches(connection: Connection) -> None:
    connection.execute("begin; declare c cursor for select i from range(10) t(i)")
    told = [
        ("fetch c", [0]),
        ("fetch next from c", [1]),
        ("fetch 0 from c", []),
        ("fetch forward 3 in c", [2, 3, 4]),
        ("fetch forward all from c", [5, 6, 7, 8, 9]),
        ("fetch 5 c", []),
    ]
    for sql, rows in told:
        cursor = connection.execute(sql)
        assert cursor.fetchall() == [(i,) for i in rows] and cursor.statusmessage == f"FETCH {len(rows)}"
