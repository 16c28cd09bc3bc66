"""MySQL's binary JSON in the log, against the text that the server has for it."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest

from dbt_incremental_dd.sources.connectors.mysql import json_text
from dbt_incremental_dd.sources.connectors.mysql.binlog import Malformed
from tests.feeds.mysql import Feed
from tests.feeds.mysql_fixtures import only_mysql

pytestmark = pytest.mark.mysql

LITERALS = (
    "null", "true", "false", "0", "-1", "32767", "32768", "-32769", "65535", "2147483648", "-2147483649",
    "9223372036854775807", "-9223372036854775808", "18446744073709551615", "18446744073709551616", "1.0", "-0.0",
    "1e2", "1e-3", "0.1", "1e14", "1e15", "123456789012345.5", "1e16", "1e22", "1.5e300", "-1e-14", "1e-15", "1e-16",
    "2.5e-15", "1.7976931348623157e308", "5e-324", "3.141592653589793", "{}", "[]", "[[[]]]", '{"": {"": []}}',
    '"ünï🐘"', r'"a\u0001\u001f\b\f\n\r\t\"\\/\u007f"', '{"bb": 1, "a": 2, "c": [1, {"d": null}], "ä": "x"}',
)  # fmt: skip
"""Documents by their text."""

SQL = (
    "JSON_ARRAY(12.50, -0.01, 0.0, 12345678901234567890.123456789, CAST(-5 AS decimal(65, 30)))",
    "JSON_ARRAY(DATE '2024-02-29', TIME '-12:34:56.789', TIME '838:59:59', TIMESTAMP '2024-02-29 23:59:59.000001')",
    "JSON_OBJECT('at', CAST('1000-01-01 00:00:00' AS datetime(3)), 'zone', CAST('00:00:00' AS time(6)))",
    "JSON_ARRAY(b'1010101010', X'00ff', CAST('a' AS binary(5)), REPEAT(X'ab', 200), UNHEX(''))",
    "JSON_ARRAY(CAST(2024 AS year), 1e0, CAST(1.5 AS float), TRUE, NULL)",
    "CAST(POINT(1, 2) AS JSON)",
    "JSON_OBJECT('long', REPEAT('x', 70000), 'n', 100000, 'u', 4000000000, 'i', -7)",
    "JSON_SET(JSON_OBJECT('a', REPEAT('y', 127), 'b', REPEAT('z', 128)), '$.c', JSON_ARRAY(1, 100000))",
    "JSON_ARRAY(REPEAT('x', 16384), REPEAT('é', 40000))",
)
"""Documents that have values of SQL's types, or are large."""


def document(rng: random.Random, depth: int = 0) -> Any:
    """A random document."""
    what = rng.randrange(9 if depth < 4 else 7)
    if what == 0:
        return rng.choice([None, True, False])
    if what in (1, 2):
        return rng.randrange(-(1 << rng.randrange(1, 64)), 1 << rng.randrange(1, 65))
    if what in (3, 4):
        return number(rng)
    if what in (5, 6):
        return "".join(
            chr(rng.choice([rng.randrange(1, 128), rng.randrange(0xA0, 0xD000)])) for _ in range(rng.randrange(9))
        )
    size = rng.choice([0, 1, 2, 5, 40])
    if what == 7:
        return [document(rng, depth + 1) for _ in range(size)]
    return {f"{rng.choice('abcä')}{rng.randrange(99)}": document(rng, depth + 1) for _ in range(size)}


def number(rng: random.Random) -> float:
    """One of all doubles, or one as people write them."""
    if rng.random() < 0.5:
        return rng.randrange(-(10**6), 10**6) / 10 ** rng.randrange(20)
    (found,) = struct.unpack("<d", rng.randbytes(8))
    return found if abs(found) <= 1.7e308 else 0.5


@only_mysql
def test_documents(mysql: Feed) -> None:
    """Copied and from the log they are the same text, the server's."""
    rng = random.Random(7)
    given = [*LITERALS, *(json.dumps(document(rng)) for _ in range(300))]
    mysql.sql("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, j json)")
    spec = mysql.spec("t")

    def insert() -> None:
        with mysql.connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t (j) VALUES (%s)", given)
        mysql.sql(*(f"INSERT INTO t (j) SELECT {one}" for one in SQL), "INSERT INTO t (j) VALUES (NULL)")

    insert()
    mysql.run(spec)
    mysql.check("t")
    insert()
    mysql.sql(
        "UPDATE t SET j = JSON_SET(j, '$.new', id, '$[0]', 'x') WHERE id % 5 = 0",
        "UPDATE t SET j = JSON_REMOVE(j, '$.a', '$[1]') WHERE id % 7 = 0 AND JSON_TYPE(j) IN ('ARRAY', 'OBJECT')",
        "UPDATE t SET j = NULL WHERE id % 11 = 0",
        "DELETE FROM t WHERE id % 13 = 0",
    )
    mysql.run(spec)
    mysql.check("t")
    assert not mysql.told


@only_mysql
def test_whole_rows_with_documents(mysql: Feed) -> None:
    """Which must be the same text, copied and from the log, for a row to be found."""
    mysql.sql("CREATE TABLE t (n int, j json)", *(f"INSERT INTO t VALUES (1, {one})" for one in SQL))
    mysql.sql(*(f"INSERT INTO t VALUES (2, '{one}')" for one in LITERALS if "\\" not in one))
    spec = mysql.spec("t")
    mysql.run(spec)
    mysql.sql("DELETE FROM t WHERE JSON_LENGTH(j) > 1", "UPDATE t SET n = 3 WHERE n = 2")
    mysql.run(spec)
    mysql.check("t")
    mysql.sql("DELETE FROM t")
    mysql.run(spec)
    assert not mysql.rows("t") and not mysql.told


@only_mysql
def test_partial_updates(mysql: Feed) -> None:
    """The log has parts of documents, so the table is copied, and no other one."""
    mysql.sql(*(f"CREATE TABLE {name} (id int PRIMARY KEY, j json)" for name in "ab"))
    mysql.sql(*(f"INSERT INTO {name} VALUES (1, JSON_OBJECT('a', REPEAT('x', 999), 'n', 1))" for name in "ab"))
    specs = mysql.spec("a"), mysql.spec("b")
    mysql.run(*specs)
    mysql.sql("SET binlog_row_value_options = PARTIAL_JSON", "UPDATE a SET j = JSON_SET(j, '$.n', 2)")
    mysql.sql("SET binlog_row_value_options = ''", "UPDATE b SET j = JSON_SET(j, '$.n', 3)")
    assert mysql.run(*specs)["b"] == 2
    mysql.check("a", "b")
    assert len(mysql.told) == 1 and ".a: copied again: the log has parts of its JSON only" in mysql.told[0]


@pytest.mark.parametrize(
    "data", [b"\x0d", b"\x00\x05", b"\x0c\x05ab", b"\x0b\0\0", b"\x02\x01\0\x09\0\x0c\xff\0", b"\x0c\x01\xff"]
)
def test_what_is_no_document(data: bytes) -> None:
    with pytest.raises((Malformed, IndexError, struct.error, UnicodeDecodeError)):
        json_text.text(data)
