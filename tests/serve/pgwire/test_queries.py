"""SELECTs over the wire: values, parameters, errors, settings, copies."""

from __future__ import annotations

import csv
import datetime
import io
import math
import uuid
from collections import Counter
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from dbt_incremental_dd.query.engine import QueryEngine
from dbt_incremental_dd.query.session import Session
from tests.serve.pgwire.conftest import Server
from tests.subscribe.stored import Stored

Connection = psycopg.Connection[Any]
UTC = datetime.UTC

VALUES = [
    ("5::tinyint", 5),
    ("(-5)::smallint", -5),
    ("200::utinyint", 200),
    ("60000::usmallint", 60000),
    ("7::integer", 7),
    ("4000000000::uinteger", 4000000000),
    ("(-9223372036854775807)::bigint", -9223372036854775807),
    ("18446744073709551615::ubigint", Decimal(18446744073709551615)),
    ("170141183460469231731687303715884105::hugeint", Decimal("170141183460469231731687303715884105")),
    ("true", True),
    ("1.5::float", 1.5),
    ("0.1::double", 0.1),
    ("1e300::double", 1e300),
    ("'Infinity'::double", math.inf),
    ("'-Infinity'::float", -math.inf),
    ("12345678901234567890.123456789::decimal(38, 9)", Decimal("12345678901234567890.123456789")),
    ("(-0.05)::decimal(5, 2)", Decimal("-0.05")),
    ("0::decimal(5, 2)", Decimal("0.00")),
    ("10000::decimal(10, 0)", Decimal("10000")),
    ("'zażółć 漢字 🦆'", "zażółć 漢字 🦆"),
    ("''", ""),
    ("from_hex('00ff5c27')", b"\x00\xff\\'"),
    ("date '2024-02-29'", datetime.date(2024, 2, 29)),
    ("date '0001-01-01'", datetime.date(1, 1, 1)),
    ("timestamp '2024-05-01 12:00:00'", datetime.datetime(2024, 5, 1, 12)),
    ("timestamp '1969-12-31 23:59:59.999999'", datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("timestamptz '2024-05-01 12:00:00.5+02'", datetime.datetime(2024, 5, 1, 10, 0, 0, 500000, tzinfo=UTC)),
    ("time '10:11:12.000013'", datetime.time(10, 11, 12, 13)),
    ("interval '1 day 02:00:00'", datetime.timedelta(days=1, hours=2)),
    ("[1, NULL, 3]", [1, None, 3]),
    ("{'a': 'x', 'b': [true]}", {"a": "x", "b": [True]}),
    ("map {'k': 1}", [["k", 1]]),
    ("'on'::enum('on', 'off')", "on"),
    ("NULL", None),
    ("NULL::decimal(5, 2)", None),
    ("NULL::timestamptz", None),
]


@pytest.mark.parametrize("binary", [False, True])
def test_values(reading: Connection, binary: bool) -> None:
    connection = reading
    listed = ", ".join(f"{sql} AS c{at}" for at, (sql, _) in enumerate(VALUES))
    found = connection.cursor(binary=binary).execute(f"SELECT {listed}").fetchone()
    assert found is not None
    for (sql, value), one in zip(VALUES, found, strict=True):
        assert one == value and type(one) is type(value), sql
    decimals = [one.as_tuple() for one in found if isinstance(one, Decimal)]
    assert decimals == [value.as_tuple() for _, value in VALUES if isinstance(value, Decimal)]
    row = connection.cursor(binary=binary).execute("select 'NaN'::double, 'NaN'::float").fetchone()
    assert row is not None and all(math.isnan(one) for one in row)


def test_texts_are_those_of_postgres(server: Server) -> None:
    with server.connect() as connection:
        sql = (
            "select timestamptz '2024-05-01 12:00:00+00', timestamp '2024-05-01 12:00:00.12', 'NaN'::double, "
            "'-Infinity'::double, true, 1.50::decimal(5, 2), '\\x41'::blob, 2::double"
        )
        found = connection.pgconn.exec_(sql.encode())
        assert [found.get_value(0, at) for at in range(found.nfields)] == [
            *(b"2024-05-01 12:00:00+00", b"2024-05-01 12:00:00.12", b"NaN", b"-Infinity", b"t", b"1.50", b"\\x41"),
            *(b"2",),
        ]
        assert [found.ftype(at) for at in range(found.nfields)] == [1184, 1114, 701, 701, 16, 1700, 17, 701]


PARAMETERS = [
    (True, "boolean"),
    (7, "smallint"),
    (-70000, "integer"),
    (2**40, "bigint"),
    (0.1, "double"),
    (-math.inf, "double"),
    ('it\'s; $1 \\ "x" 🦆', "varchar"),
    (Decimal("-123456789.000100"), "decimal(15, 6)"),
    (Decimal("1E+3"), "decimal(4, 0)"),
    (b"\x00\\'\xff", "blob"),
    (datetime.date(1999, 12, 31), "date"),
    (datetime.datetime(2024, 5, 1, 12, 0, 0, 17), "timestamp"),
    (datetime.datetime(1960, 5, 1, 12, tzinfo=UTC), "timestamptz"),
    (datetime.time(1, 2, 3, 4), "time"),
    (uuid.UUID(int=5), "uuid"),
]


@pytest.mark.parametrize("place", ["%t", "%b"])
@pytest.mark.parametrize(("value", "kind"), PARAMETERS)
def test_parameters(reading: Connection, place: str, value: object, kind: str) -> None:
    connection = reading
    sql = f"select {place}, ({place})::{kind} = {place}, {place} is null"
    row = connection.execute(sql, [value, value, value, None]).fetchone()
    assert row is not None and row[1:] == (True, True)
    assert row[0] == (str(value) if kind == "uuid" or (kind == "varchar") else value)


def test_parameters_of_no_type_take_that_of_their_place(connection: Connection) -> None:
    row = connection.execute("select k from kept where k = %s and v = %s", ["1", "a"]).fetchone()
    assert row == (1,)
    row = connection.execute("select date '2024-01-02' > %s, %s", ["2024-01-01", 1]).fetchone()
    assert row == (True, 1)
    assert connection.execute("select count(*) from kept as of %s", [12]).fetchone() == (3,)
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        connection.execute("select k from kept where k = %s", ["one"]).fetchone()


def test_reads_as_of_times(connection: Connection, stored: Stored) -> None:
    def rows(sql: str) -> Counter[Any]:
        return Counter(connection.execute(sql).fetchall())

    now = {(1, "a"): 1, (2, "b"): 1, (3, None): 1}
    assert rows("select * from m.kept") == now
    assert rows('SELECT "k", v FROM "m"."kept" AS OF 19') == {(1, "a"): 1, (2, "b"): 2}
    assert rows("select * from kept as of timestamp '1970-01-01 00:00:00.02'") == now
    assert rows("select * from kept as of 9") == {}
    stored.forget(15)
    for t in (12, 31):
        with pytest.raises(psycopg.errors.NumericValueOutOfRange, match="cannot be read as of") as raised:
            connection.execute(f"select * from kept as of {t}")
        assert raised.value.diag.message_hint
    assert rows("values (1, 'a'), (1, 'a')") == {(1, "a"): 2}
    assert rows("with x as (select k from kept) select max(k) from x") == {(3,): 1}
    assert rows("show tables") == {("kept",): 1}


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("selec", "42601"),
        ("select 'a", "42601"),
        ("select * from nosuch", "42P01"),
        ("select * from nosuch.kept", "42P01"),
        ("subscribe nosuch", "42P01"),
        ("subscribe (select * from nosuch)", "42P01"),
        ("select nosuch from kept", "42703"),
        ("select nosuch(1)", "42883"),
        ("select k, count(*) from kept", "42803"),
        ("select 1 // 0", "22012"),
        ("select v::int from kept", "22P02"),
        ("select * from kept as of tomorrow", "22007"),
        ("subscribe kept as of 20 up to 20", "22023"),
        ("subscribe kept envelope upsert (key (z))", "22023"),
        ("subscribe (select count(*) from kept)", "42601"),
        ("insert into kept values (5, 'x')", "25006"),
        ("drop table kept", "25006"),
        ("explain select 1", "0A000"),
        ("select * from read_csv('/etc/passwd')", "42501"),
        ("fetch 1 from c", "34000"),
        ("close c", "34000"),
        ("declare c cursor for select 1", "25P01"),
        ("savepoint s", "25P01"),
        ("show nosuch", "42704"),
        ("set client_encoding to latin1", "22023"),
        ("call x()", "25006"),
    ],
)
def test_errors(reading: Connection, sql: str, state: str) -> None:
    connection = reading
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(sql)
    assert raised.value.diag.sqlstate == state
    assert raised.value.diag.severity == "ERROR" and raised.value.diag.message_primary
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(f"select 1; {sql}; select 2", prepare=False)
    assert raised.value.diag.sqlstate == state
    assert connection.execute("select 1").fetchone() == (1,)


def test_what_nobody_has_foreseen(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("quite unforeseen")

    with monkeypatch.context() as patched:
        patched.setattr(Session, "select", broken)
        with pytest.raises(psycopg.errors.InternalError_, match="quite unforeseen"):
            connection.execute("select k from kept")
    assert "quite unforeseen" in caplog.text
    assert connection.execute("select max(k) from kept").fetchone() == (3,)


def test_several_statements_at_once(connection: Connection) -> None:
    cursor = connection.execute("select ';' as x; ; select k from kept order by k; -- ;\n begin; commit")
    found = []
    while True:
        found.append((cursor.statusmessage, cursor.fetchall() if cursor.description else None))
        if not cursor.nextset():
            break
    assert found == [("SELECT 1", [(";",)]), ("SELECT 3", [(1,), (2,), (3,)]), ("BEGIN", None), ("COMMIT", None)]
    assert connection.execute("").statusmessage is None
    assert connection.execute('select 1 as a, 2 as a, 3 as "B c" where false').description is not None


def test_many_statements_in_a_pipeline(connection: Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany("select k, %s from kept where k = %s", [(str(k), k) for k in (1, 2, 3, 4)] * 20, returning=True)
    found = []
    while True:
        found.append(cursor.fetchall())
        if not cursor.nextset():
            break
    assert found == [[(1, "1")], [(2, "2")], [(3, "3")], []] * 20
    with connection.pipeline() as pipeline:
        good = connection.execute("select count(*) from kept where k > %s", [1])
        pipeline.sync()
        bad, after = connection.execute("select nosuch"), connection.execute("select 1")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            pipeline.sync()
        assert good.fetchone() == (2,)
        with pytest.raises(psycopg.Error):
            bad.fetchone()
        with pytest.raises(psycopg.ProgrammingError):
            after.fetchone()
    assert connection.execute("select 1").fetchone() == (1,)


def test_prepared_statements_see_what_has_come(connection: Connection, stored: Stored) -> None:
    counts = []
    for t in range(40, 44):
        stored.commit({t: Counter({(t, "n"): 1})}, t + 1)
        counts += connection.execute("select count(*) from kept where k >= %s", [0], prepare=True).fetchone() or ()
    assert counts == [4, 5, 6, 7]
    connection.execute("deallocate all")
    assert connection.execute("select count(*) from kept", prepare=True).fetchone() == (7,)


def test_many_rows(connection: Connection) -> None:
    cursor = connection.cursor(binary=True)
    assert sum(k for (k,) in cursor.stream("select * from range(120000)")) == 119999 * 60000
    assert cursor.execute("select i from range(30000) t(i) where i % 2 = 0").rowcount == 15000


def test_copies(connection: Connection) -> None:
    def copied(sql: str) -> str:
        with connection.cursor().copy(sql) as copy:
            return b"".join(bytes(data) for data in copy).decode()

    awkward = "select 'a\tb\\\n' as x, NULL as y, '' as z, '\\N' as w, [1] as \"v\"\"v\""
    assert copied(f"copy ({awkward}) to stdout") == "a\\tb\\\\\\n\t\\N\t\t\\\\N\t[1]\n"
    told = copied(f"COPY ({awkward}) TO STDOUT WITH (FORMAT csv, HEADER)")
    assert list(csv.reader(io.StringIO(told, newline=""))) == [
        ["x", "y", "z", "w", 'v"v'],
        ["a\tb\\\n", "", "", "\\N", "[1]"],
    ]
    assert told.splitlines()[-1].endswith(',,"",\\N,[1]')
    assert sorted(copied("copy m.kept to stdout csv").split()) == ["1,a", "2,b", "3,"]
    assert (
        copied("copy (select * from kept where k = 1) to stdout with (format csv, delimiter ';', null 'x')") == "1;a\n"
    )
    assert copied("copy (select i from range(20000) t(i)) to stdout").count("\n") == 20000
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), connection.cursor().copy("copy kept from stdin"):
        pass
    with connection.cursor().copy("copy (select 7) to stdout") as copy:
        copy.set_types(["int4"])
        assert list(copy.rows()) == [(7,)]


def test_settings(connection: Connection) -> None:
    def shown(name: str) -> object:
        return (connection.execute(f"show {name}").fetchone() or (None,))[0]

    told = connection.info.parameter_status
    assert str(told("server_version")).startswith("15.0 (dbt-incremental-dd ")
    assert connection.info.server_version == 150000
    for name in ("server_version", "standard_conforming_strings", "TimeZone", "client_encoding", "integer_datetimes"):
        assert shown(name) == told(name)
    assert shown("transaction isolation level") == "serializable" and shown("search_path") == "public"
    connection.execute("set search_path to m, public")
    connection.execute("set application_name = 'mine'")
    assert shown("search_path") == "m, public" and shown("application_name") == "mine"
    connection.execute("reset search_path")
    assert shown("search_path") == "public" and shown("application_name") == "mine"
    connection.execute("discard all")
    assert shown("application_name") == ""
    connection.execute("set timezone to 'Europe/Warsaw'")
    assert shown("timezone") == "UTC"
    assert ("timezone", "UTC", "") in connection.execute("show all").fetchall()


def test_who_and_where(connection: Connection) -> None:
    row = connection.execute(
        "select version(), current_database(), current_schema(), current_user, session_user"
    ).fetchone()
    assert row is not None and row[0].startswith("PostgreSQL 15.0 (dbt-incremental-dd")
    assert row[1:] == ("dd", "public", "reader", "reader")
    assert connection.execute("select current_setting('server_version_num')").fetchone() == ("150000",)
    assert connection.execute("select pg_backend_pid()").fetchone() == (connection.info.backend_pid,)


def test_the_catalog(connection: Connection, stored: Stored) -> None:
    columns = (
        "select column_name, data_type from information_schema.columns where table_schema = %s and table_name = %s"
    )
    assert connection.execute(columns, ["m", "kept"]).fetchall() == [("k", "bigint"), ("v", "text")]
    tables = "select table_schema, table_name from information_schema.tables"
    assert connection.execute(tables).fetchall() == [("m", "kept")]
    attributes = (
        "select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) from pg_catalog.pg_attribute a "
        "where a.attrelid = 'm.kept'::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum"
    )
    assert connection.execute(attributes).fetchall() == [("k", "bigint"), ("v", "text")]
    stored.place.remove()
    assert connection.execute(tables).fetchall() == []
    assert psycopg.types.TypeInfo.fetch(connection, "nosuch") is None
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("select * from pg_catalog.pg_nosuch")


def test_a_statement_that_has_ended_is_not_interrupted(stored: Stored) -> None:
    engine = QueryEngine(stored.place.storage)
    session = Session(engine)
    session.interrupt()
    assert sum(batch.num_rows for batch in session.select("select * from kept").batches) == 3
    session.interrupt()
    assert sum(batch.num_rows for batch in session.select("select * from kept").batches) == 3
    engine.close()
    session.interrupt()
