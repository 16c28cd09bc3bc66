"""Values of every type, copied and from the log, against what the server says they are."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

import dbt_incremental_dd
from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import STRING
from dbt_incremental_dd.sources.connectors.database_log.consistent_point import TableRequest
from dbt_incremental_dd.sources.connectors.database_log.last_commit import LastCommit
from dbt_incremental_dd.sources.connectors.mysql.consistent_point import make
from dbt_incremental_dd.sources.connectors.mysql.spec import MysqlSpec
from tests.feeds.mysql import Feed

pytestmark = pytest.mark.mysql

NUMBERS = {
    "tinyint": ("byte", ["-128", "127", "0"]),
    "tinyint unsigned": ("short", ["255"]),
    "smallint": ("short", ["-32768", "32767"]),
    "smallint unsigned": ("integer", ["65535"]),
    "mediumint": ("integer", ["-8388608", "8388607", "-1"]),
    "mediumint unsigned": ("integer", ["16777215"]),
    "int": ("integer", ["-2147483648", "2147483647"]),
    "int unsigned": ("long", ["4294967295"]),
    "int(5) zerofill": ("long", ["42"]),
    "bigint": ("long", ["-9223372036854775808", "9223372036854775807"]),
    "bigint unsigned": ("long", ["9223372036854775807"]),
    "decimal(10,2)": ("decimal(10,2)", ["-99999999.99", "0.01", "-0.01", "1", "0"]),
    "decimal(38,0)": ("decimal(38,0)", ["9" * 38, "-" + "1" * 38]),
    "decimal(38,38)": ("decimal(38,38)", ["0." + "1" * 38, "-0." + "0" * 37 + "1"]),
    "decimal(38,30)": ("decimal(38,30)", ["-12345678.123456789012345678901234567891", "0.5"]),
    "decimal(27,9)": ("decimal(27,9)", ["123456789012345678.000000001", "-1000000000.1"]),
    "decimal(9,3) unsigned zerofill": ("decimal(9,3)", ["1.5"]),
    "double": ("double", ["0.1", "-1.7976931348623157e308", "2.2250738585072014e-308", "123456789.123456789", "0"]),
    "double(10,3)": ("double", ["0.125", "1234567.891"]),
    "bit(1)": ("boolean", ["b'0'", "b'1'"]),
    "bit(10)": ("long", ["b'1000000001'", "5"]),
    "bit(64)": ("long", ["9223372036854775807"]),
    "year": ("integer", ["1901", "2155", "0", "2024"]),
}
DATES = {
    "date": ("date", ["'1000-01-01'", "'2024-02-29'", "'9999-12-31'", "'0001-01-01'"]),
    "datetime": ("timestamp_ntz", ["'1000-01-01 00:00:00'", "'2024-03-31 02:30:00'", "'9999-12-31 23:59:59'"]),
    "datetime(1)": ("timestamp_ntz", ["'2024-01-01 23:59:59.9'"]),
    "datetime(3)": ("timestamp_ntz", ["'2024-01-01 23:59:59.007'"]),
    "datetime(6)": ("timestamp_ntz", ["'2024-01-01 23:59:59.999999'", "'1969-12-31 23:59:59.000001'"]),
    "timestamp": ("timestamp", ["'2024-07-01 12:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"]),
    "timestamp(4)": ("timestamp", ["'2024-07-01 12:00:00.0001'"]),
    "timestamp(6)": ("timestamp", ["'2024-07-01 12:00:00.000001'"]),
}
TEXTS = {
    "varchar(300)": ["''", "'x'", "'ünïcode 🐘'", "' x '", "'a\\0b\\n\\\\ \\'q\\' ,'", "repeat('é', 300)"],
    "char(5)": ["'ab'", "'ab   '", "''"],
    "text": ["repeat('long ', 3000)", "'NULL'"],
    "longtext": ["'x'"],
    "json": ["""'{"b": 1,  "a": null}'"""],
    "varchar(20) character set latin1": ["'äöüß€'", "X'8190'", "'x'"],
    "char(20) character set latin2": ["'ąęł'"],
    "varchar(20) character set cp1251": ["'Привет'"],
    "text character set utf8mb3": ["'ünïcode'"],
    "varchar(20) character set ucs2": ["'ü5'"],
    "varchar(20) character set utf16": ["'🐘x'"],
    "varchar(20) character set utf32": ["'🐘x'"],
    "varchar(20) character set utf16le": ["'🐘x'"],
    "varchar(20) character set ascii": ["'abc'"],
    "enum('a','it''s','ö','b\\\\c,d','')": ["'a'", "'it''s'", "'ö'", "'b\\\\c,d'", "''", "'none'"],
    "set('a','it''s','ö','x')": ["'x,a'", "'ö'", "''", "'a,it''s,ö,x'"],
    "time": ["'838:59:59'", "'-838:59:59'", "'00:00:00'", "'-00:00:01'"],
    "time(2)": ["'-01:02:03.04'", "'12:34:56.78'", "'-00:00:00.01'"],
    "time(6)": ["'-00:00:00.000001'", "'-12:34:56.789'", "'838:59:58.999999'"],
    "decimal(65,30)": ["12345678901234567890123456789012345.123456789012345678901234567891", "-0.5"],
    "uuid": ["'123e4567-e89b-12d3-a456-426614174000'", "'ffffffff-ffff-4fff-bfff-ffffffffffff'", "uuid()"],
}
BYTES = {
    "binary(4)": ["X'61'", "X'00'", "X'61006200'", "X'20'"],
    "varbinary(300)": ["X''", "X'00ff'", "repeat(X'ff', 300)"],
    "blob": ["X'00ff'", "''"],
    "tinyblob": ["'x'"],
    "longblob": ["repeat(X'00', 70000)"],
}
MARIADB = ("uuid", "decimal(38,38)")
"""Which MySQL does not have."""


def kinds(mysql: Feed) -> dict[str, tuple[str, list[str]]]:
    """Spark's type and values, by the server's type."""
    texts = {name: ("string", values) for name, values in TEXTS.items()}
    found = {**NUMBERS, **DATES, **texts, **{name: ("binary", values) for name, values in BYTES.items()}}
    return {name: one for name, one in found.items() if mysql.is_mariadb or name not in MARIADB}


def plain(value: Any) -> Any:
    """In the server's session times are UTC."""
    return value.timestamp() if getattr(value, "tzinfo", None) is not None else value


def shown(column: str, kind: str, dtype: str) -> str:
    """An expression of the server's for what is stored."""
    if kind.startswith("bit"):
        return f"{column} + 0"
    if dtype == "timestamp":
        return f"UNIX_TIMESTAMP({column}) + 0e0"
    return f"CAST({column} AS CHAR)" if dtype == "string" else f"{column} + 0e0" if dtype == "float" else column


@pytest.mark.parametrize("whole", [False, True])
def test_values(mysql: Feed, whole: bool) -> None:
    """Also where whole rows identify them, and go. (With a key, bytes are compared in Spark.)"""
    types = kinds(mysql)
    types = {kind: types[kind] for kind in types if whole or kind not in BYTES}
    columns = {f"c{place}": kind for place, kind in enumerate(types)}
    key = "id int" if whole else "id int PRIMARY KEY"
    mysql.sql("SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'")
    mysql.sql(f"CREATE TABLE t ({key}, {', '.join(f'{name} {kind} NULL' for name, kind in columns.items())})")
    number = 0

    def insert() -> None:
        nonlocal number
        most = max(len(values) for _, values in types.values())
        for place in range(most + 1):  # the last one has NULL everywhere
            number += 1
            values = ", ".join(found[place] if place < len(found) else "NULL" for _, found in types.values())
            mysql.sql(f"INSERT INTO t VALUES ({number}, {values})")

    insert()
    spec = mysql.spec("t")
    mysql.run(spec)
    compare(mysql, columns, types)
    insert()
    mysql.sql("UPDATE t SET id = id + 1000 WHERE id % 2 = 0", "DELETE FROM t WHERE id % 3 = 0")
    mysql.run(spec)
    assert not mysql.told
    compare(mysql, columns, types)


def compare(mysql: Feed, columns: dict[str, str], types: dict[str, tuple[str, list[str]]]) -> None:
    """Of strings their text, of the rest PyMySQL's value of the type."""
    collection = dbt_incremental_dd.open(mysql.storage.root)[f"{mysql.schema}.t"]
    parts = [shown(column, kind, types[kind][0]) for column, kind in columns.items()]
    expected = [tuple(row) for row in mysql.query(f"SELECT id, {', '.join(parts)} FROM t ORDER BY id")]
    found = collection.as_of().sort_by("id")
    stored = [tuple(plain(row[name]) for name in ("id", *columns)) for row in found.to_pylist()]
    assert len(stored) == len(expected)
    for ours, theirs in zip(stored, expected, strict=True):
        for name, own, other in zip(("id", *columns), ours, theirs, strict=True):
            assert own == other, f"{columns.get(name)}: {own!r}, not {other!r}"
    arrow = {field.name: str(field.type) for field in found.schema}
    assert arrow["c0"] == "int8" and {arrow[c] for c, kind in columns.items() if kind == "bit(1)"} == {"bool"}


def test_floats(mysql: Feed) -> None:
    """Exactly, though the server shows six digits; as text they are the same, copied and from the log. (Collections
    with floats are computed in Spark, so the connector is asked by itself.)"""
    values = [0.1, 1 / 3, 16777217.0, -0.0, 1e-30, 1e20, 123456789.123456789, 5e-324, 1.7976931348623157e308]
    small = [value if 1e-30 <= abs(value) <= 1e30 or not value else 2.5 for value in values]
    mysql.sql("CREATE TABLE t (id int PRIMARY KEY, f float, d double, s double, n double(10, 3))")
    spec, last, found = mysql.spec("t"), LastCommit(), []
    assert isinstance(spec, MysqlSpec)
    declared = Schema((Column("s", STRING),))
    for _ in range(2):
        rows = enumerate(zip(values, small, strict=True))
        mysql.sql(
            "DELETE FROM t",
            *(f"INSERT INTO t VALUES ({i}, {real!r}, {one!r}, {one!r}, {i}.125)" for i, (one, real) in rows),
        )
        changes = make(mysql.storage, spec.address, [TableRequest(spec, last, declared)]).changes[spec.name]
        last = LastCommit(changes.progress, changes.table.records)
        assert not pc.any(changes.spool.table["dd_gone"]).as_py() if found else changes.is_whole
        found.append(changes.spool.table.select(["id", "f", "d", "s", "n"]).sort_by("id"))
    assert found[0] == found[1]
    expected = mysql.query("SELECT id, f + 0e0, d, n FROM t ORDER BY id")
    stored = [tuple(row[name] for name in ("id", "f", "d", "n")) for row in found[0].to_pylist()]
    assert stored == expected and [float(text) for text in found[0]["s"].to_pylist()] == [row[2] for row in expected]


UNFIT = (
    ("date", "0000-00-00", "c .date. holds '0000-00-00'"),
    ("date", "2024-00-10", "2024-00-10"),
    ("datetime(3)", "0000-00-00 00:00:00", "'0000-00-00 00:00:00.000'"),
    ("timestamp", "0", "'0000-00-00 00:00:00'"),
    ("bigint unsigned", "18446744073709551615", "'18446744073709551615', which Spark's long cannot hold"),
)


def test_values_that_spark_has_no_form_for(mysql: Feed) -> None:
    names = [f"t{place}" for place in range(len(UNFIT))]
    mysql.sql("SET sql_mode = ''")
    for name, (kind, _, _) in zip(names, UNFIT, strict=True):
        mysql.sql(f"CREATE TABLE {name} (id int PRIMARY KEY, c {kind} NULL)")
    mysql.run(*map(mysql.spec, names))
    for name, (_, value, words) in zip(names, UNFIT, strict=True):
        mysql.sql(f"INSERT INTO {name} VALUES (1, '{value}')")
        with pytest.raises(SourceError, match=rf"(?s)\.{name}: .*{words}.*data_type string"):
            mysql.run(mysql.spec(name))
        mysql.storage.collection(f"{mysql.schema}.{name}").remove()
    texts = [mysql.spec(name, {"c": "string"}) for name in names]
    mysql.run(*texts)
    mysql.sql(*(f"INSERT INTO {name} VALUES (2, '{value}')" for name, (_, value, _) in zip(names, UNFIT, strict=True)))
    mysql.run(*texts)
    mysql.check(*names, columns="id, CAST(c AS CHAR)")


def test_declared_types(mysql: Feed) -> None:
    mysql.sql(
        "CREATE TABLE t (id int PRIMARY KEY, n decimal(10,2), m bigint, at datetime, is_on tinyint(1), b binary(2), "
        "u bigint unsigned)"
    )
    mysql.sql("INSERT INTO t VALUES (1, 7.00, 7, '2024-01-01', 1, 'x', 18446744073709551615)")
    spec = mysql.spec(
        "t", {"n": "int", "m": "decimal(20,2)", "u": "decimal(20,0)", "at": "timestamp", "is_on": "boolean"}
    )
    mysql.run(spec)
    ((row, _),) = mysql.rows("t").items()
    assert [type(value).__name__ for value in row] == ["int", "int", "Decimal", "datetime", "bool", "bytes", "Decimal"]
    mysql.sql("INSERT INTO t VALUES (2, 1.25, 7, NULL, NULL, NULL, 1)")
    with pytest.raises(SourceError, match=r"column n .decimal. holds '1\.25'"):
        mysql.run(spec)
    mysql.sql("DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 1, 7, NULL, 2, NULL, 1)")
    with pytest.raises(SourceError, match=r"column is_on .tinyint. holds '2'"):
        mysql.run(spec)
    for columns, words in (
        ({"n": "date"}, "n .*declared date"),
        ({"b": "string"}, "b .*declared string"),
        ({"nosuch": "int"}, "no column nosuch"),
    ):
        with pytest.raises(SourceError, match=words):
            mysql.run(mysql.spec("t", columns))
