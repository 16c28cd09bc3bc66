"""Statements, intervals and numbers, apart from any connection."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dbt_incremental_dd.core.errors import DifferentialError
from dbt_incremental_dd.serve.pgwire import datetimes, numeric
from dbt_incremental_dd.serve.pgwire.errors import PgError
from dbt_incremental_dd.serve.pgwire.parameters import Literal, bind_literals, parameter_oids
from dbt_incremental_dd.serve.pgwire.parser import parse, seconds
from dbt_incremental_dd.serve.pgwire.statements import (
    Close,
    Copy,
    Deallocate,
    Declare,
    Fetch,
    Select,
    Set,
    Show,
    Statement,
    Subscribe,
    Transaction,
)
from dbt_incremental_dd.serve.pgwire.token_cursor import split_statements


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        ("select 1", Select("select 1")),
        ("SHOW TABLES", Select("SHOW TABLES")),
        ("SUBSCRIBE m.kept", Subscribe("m.kept", None)),
        ('tail to M."Kept"', Subscribe("m.Kept", None)),
        (
            "subscribe (select k from kept where v = ')') as of 5",
            Subscribe(None, "select k from kept where v = ')'", as_of=5),
        ),
        ("SUBSCRIBE kept WITH (PROGRESS) AS OF 7 UP TO 9", Subscribe("kept", None, (), True, True, 7, 9)),
        (
            "subscribe kept as of 7 up to 9 with (progress = true, snapshot = false)",
            Subscribe("kept", None, (), True, False, 7, 9),
        ),
        ("subscribe kept with (snapshot false, progress false)", Subscribe("kept", None, (), False, False)),
        ("TAIL kept WITHOUT SNAPSHOT AS OF '1970-01-01 00:00:01'", Subscribe("kept", None, (), False, False, 1000)),
        ("TAIL kept WITH SNAPSHOT", Subscribe("kept", None)),
        ('subscribe kept envelope upsert (key (k, "V")) with (progress)', Subscribe("kept", None, ("k", "V"), True)),
        ("declare c cursor for subscribe kept", Declare("c", Subscribe("kept", None), False)),
        ('DECLARE "C x" NO SCROLL CURSOR WITH HOLD FOR SELECT 1', Declare("C x", Select("SELECT 1"), True)),
        ("declare c binary insensitive cursor without hold for select ';'", Declare("c", Select("select ';'"), False)),
        ("fetch c", Fetch("c", 1, None)),
        ("fetch next from c", Fetch("c", 1, None)),
        ("FETCH FORWARD 10 IN c", Fetch("c", 10, None)),
        ("fetch all \"C x\" with (timeout = '1s')", Fetch("C x", None, 1.0)),
        ("fetch 5 from c with (timeout 500 ms)", Fetch("c", 5, 0.5)),
        ("fetch forward all from c with (timeout = interval '1 minute 30 seconds')", Fetch("c", None, 90.0)),
        ("close c", Close("c")),
        ("close all", Close(None)),
        ("copy (select ')' as x) to stdout", Copy(Select("select ')' as x"), "text")),
        (
            "COPY m.kept TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';')",
            Copy(Select("SELECT * FROM m.kept"), "csv", True, ";", ""),
        ),
        ("copy kept (k, v) to stdout csv header", Copy(Select('SELECT "k", "v" FROM kept'), "csv", True, ",", "")),
        ("copy (subscribe kept up to 5) to stdout", Copy(Subscribe("kept", None, up_to=5), "text")),
        ("copy (select 1) to stdout with (format text, null 'N')", Copy(Select("select 1"), "text", False, "\t", "N")),
        ("begin isolation level serializable, read only", Transaction("BEGIN")),
        ("START TRANSACTION", Transaction("BEGIN")),
        ("end", Transaction("COMMIT")),
        ("abort work", Transaction("ROLLBACK")),
        ('rollback to savepoint "_pg3_1"', Transaction("ROLLBACK TO", "_pg3_1")),
        ("savepoint s", Transaction("SAVEPOINT", "s")),
        ("release savepoint s", Transaction("RELEASE", "s")),
        ("set search_path to a, b", Set("SET", "search_path", "a, b")),
        ("set session x.y = 'z'", Set("SET", "x.y", "z")),
        ("set local statement_timeout = default", Set("SET", "statement_timeout", None)),
        ("set time zone 'UTC'", Set("SET", "timezone", "UTC")),
        ("reset all", Set("RESET")),
        ("discard all", Set("DISCARD")),
        ("show transaction isolation level", Show("transaction_isolation")),
        ("SHOW Server_Version", Show("server_version")),
        ("deallocate prepare p", Deallocate("p")),
        ("deallocate all", Deallocate(None)),
    ],
)
def test_statements(sql: str, statement: Statement) -> None:
    assert parse(sql) == statement


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("subscribe", "42601"),
        ("subscribe kept nonsense", "42601"),
        ("subscribe (select 1", "42601"),
        ("subscribe kept with (speed)", "42601"),
        ("subscribe kept with (progress = maybe)", "22023"),
        ("subscribe kept envelope debezium (key (k))", "42601"),
        ("declare c cursor for fetch d", "42601"),
        ("declare c cursor for", "42601"),
        ("fetch backward 1 from c", "0A000"),
        ("fetch 1 c with (timeout = 'soon')", "22007"),
        ("fetch 1 c with (timeout)", "22007"),
        ("close", "42601"),
        ("copy kept from stdin", "25006"),
        ("copy kept to '/tmp/x'", "42601"),
        ("copy (select 1) to stdout with (format parquet)", "0A000"),
        ("copy (select 1) to stdout with (delimiter 'ab')", "22023"),
        ("insert into kept values (1)", "25006"),
        ("CREATE TABLE x (a int)", "25006"),
        ("explain select 1", "0A000"),
        ("set x", "42601"),
    ],
)
def test_what_is_no_statement(sql: str, code: str) -> None:
    with pytest.raises(PgError) as raised:
        parse(sql)
    assert raised.value.code == code


@pytest.mark.parametrize("sql", ["subscribe kept as of", "subscribe kept as of now()", "subscribe kept up to 'never'"])
def test_what_is_no_time(sql: str) -> None:
    with pytest.raises(DifferentialError, match="is not a time"):
        parse(sql)


def test_statements_are_told_apart_by_their_words() -> None:
    sql = 'select \';\' as "a;b"; -- x;\n fetch 1 from "c;d" /* ; */;; select $$;$$;'
    assert split_statements(sql) == ["select ';' as \"a;b\"", 'fetch 1 from "c;d"', "select $$;$$"]
    assert split_statements(" ; -- nothing") == []


def test_parameters_take_their_places() -> None:
    literals = [Literal(23, "5"), Literal(0, "it's $1"), Literal(1700, "-1.50"), Literal(25, None)]
    sql = "select $1, '$1', \"$2\", $2 || $4, $3 -- $1\n, a$1"
    assert bind_literals(sql, literals).startswith(
        "select '5'::INTEGER, '$1', \"$2\", 'it''s $1' || NULL::VARCHAR, '-1.50'::DECIMAL(3, 2)"
    )
    assert bind_literals("select * from x as of $1", literals) == "select * from x as of 5"
    with pytest.raises(PgError, match=r"no parameter \$5"):
        bind_literals("select $5", literals)
    assert parameter_oids("select $2::bigint, $1, $4", [0, 0]) == [0, 20, 0, 0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0", 0),
        ("0s", 0),
        ("1s", 1),
        ("250ms", 0.25),
        ("2 minutes", 120),
        ("1 hour", 3600),
        ("00:00:01.5", 1.5),
        ("1 day 00:01", 86460),
        ("3 secs", 3),
        ("2 mins", 120),
    ],
)
def test_intervals(text: str, told: float) -> None:
    assert seconds(text) == told


@given(st.decimals(allow_nan=False, allow_infinity=False, places=7) | st.integers().map(Decimal))
@example(Decimal("0"))
@example(Decimal("0.00"))
@example(Decimal("-0.00012345"))
@example(Decimal("10000"))
@example(Decimal("1E+10"))
@example(Decimal("99999999999999999999999999999999999999"))
def test_numbers_in_binary_are_exact(number: Decimal) -> None:
    found = numeric.unpack(numeric.pack(number))
    assert found == number
    assert found.as_tuple().exponent == min(number.as_tuple().exponent, 0)  # type: ignore[type-var]


@given(st.datetimes())
def test_timestamps_as_text(moment: datetime.datetime) -> None:
    us = (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    said = datetimes.timestamp_text(us).decode()
    assert datetime.datetime.fromisoformat(said.ljust(26, "0") if "." in said else said) == moment
    assert datetimes.date_text(us // 86_400_000_000).decode() == moment.date().isoformat()


def test_dates_before_christ_and_for_ever() -> None:
    assert datetimes.date_text(-719_163) == b"0001-12-31 BC"
    assert datetimes.date_text(-719_162) == b"0001-01-01"
    assert datetimes.date_text(2**31 - 1) == b"infinity"
    assert datetimes.zoned_text(-(2**63 - 1)) == b"-infinity"
