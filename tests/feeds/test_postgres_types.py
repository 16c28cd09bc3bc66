"""Values of every type, copied and from the log, against what the server says they are."""

from __future__ import annotations

import math
from typing import Any

import pytest

import dbt_incremental_dd
from dbt_incremental_dd.core.errors import SourceError
from dbt_incremental_dd.core.types import STRING, Decimal
from dbt_incremental_dd.sources.connectors.postgres.types import spark_type
from tests.feeds.postgres import Feed

SAME = {
    "bool": ("boolean", ["true", "false", None]),
    "int2": ("short", ["-32768", "32767"]),
    "int4": ("integer", ["-2147483648", "2147483647"]),
    "int8": ("long", ["-9223372036854775808", "9223372036854775807"]),
    "oid": ("long", ["4294967295"]),
    "numeric(10,2)": ("decimal(10,2)", ["-99999999.99", "0.01", "1"]),
    "numeric(38,0)": ("decimal(38,0)", ["99999999999999999999999999999999999999"]),
    "numeric(5)": ("decimal(5,0)", ["12345"]),
    "text": ("string", ["", "x", 'a"b,c', "line\nline\r\n", "\\N", "\\", "ünïcode 🐘", "'", " "]),
    "varchar(9)": ("string", ["", " x "]),
    "bytea": ("binary", ["\\x", "\\x00ff", "\\x5c"]),
    "date": ("date", ["0001-01-01", "1582-10-10", "2024-02-29", "9999-12-31"]),
    "timestamp": ("timestamp_ntz", ["0001-01-01 00:00:00", "2024-01-01 23:59:59.999999", "1900-01-01 00:00:00.1"]),
    "timestamptz": ("timestamp", ["2024-01-01 12:00:00.5+02", "1883-11-18 12:00:00+00", "9998-01-01 00:00:00+00"]),
}
TEXTS = {
    "numeric": ["NaN", "123456789012345678901234567890123456789012345678901234567890.000", "-1.50", "1e20"],
    "numeric(50,10)": ["1.5"],
    "char(5)": ["ab"],
    '"char"': ["a"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "json": ['{"b": 1,  "a": null}'],
    "jsonb": ['{"b": 1,  "a": null}'],
    "int[]": ["{1,NULL,3}", "{{1},{2}}", "{}"],
    "text[]": ['{"a,b",NULL,"NULL",""}'],
    "interval": ["1 year 2 days 03:04:05.6", "-1 month"],
    "time": ["24:00:00", "12:34:56.789"],
    "timetz": ["12:00:00+05"],
    "inet": ["10.0.0.1/8"],
    "money": ["$1.50"],
    "mood": ["sad", "it's"],
    "point": ["(1.5,2)"],
    "int4range": ["[1,5)"],
    "bit(3)": ["101"],
    "tsvector": ["'a' 'b'"],
    "xml": ["<a/>"],
    "pair": ['(1,"x y")'],
}


def test_types() -> None:
    assert spark_type("numeric", ((20 << 16) | (2048 - 3)) + 4) == STRING
    assert spark_type("numeric", ((20 << 16) | 3) + 4) == Decimal(20, 3)
    assert spark_type("numeric", ((2 << 16) | 5) + 4) == STRING


@pytest.mark.postgres
def test_values(feed: Feed) -> None:
    feed.sql("CREATE TYPE mood AS ENUM ('sad', 'it''s'); CREATE TYPE pair AS (a int, b text)")
    feed.sql(
        "CREATE DOMAIN positive AS numeric(12,3) CHECK (value > 0); CREATE DOMAIN small AS positive CHECK (value < 10)"
    )
    kinds = {name: values for name, (_, values) in SAME.items() if values} | TEXTS | {"small": ["1.5"]}
    columns = {f"c{i}": name for i, name in enumerate(kinds)}
    feed.sql(f"CREATE TABLE t (id serial PRIMARY KEY, {', '.join(f'{c} {kind}' for c, kind in columns.items())})")

    def insert() -> None:
        for column, kind in columns.items():
            for value in kinds[kind]:
                feed.connection.execute(f"INSERT INTO t ({column}) VALUES (%s::text::{kind})", (value,))

    insert()
    spec = feed.spec("t")
    feed.run(spec)
    compare(feed, columns)
    insert()
    feed.sql("UPDATE t SET id = id + 1000 WHERE id % 2 = 0")
    feed.run(spec)
    compare(feed, columns)


def compare(feed: Feed, columns: dict[str, str]) -> None:
    """Of strings their text, of the rest psycopg's value of the type."""
    collection = dbt_incremental_dd.open(feed.storage.root)["public.t"]
    types = {name: dtype for name, (dtype, _) in SAME.items()} | {"small": "decimal(12,3)"}
    shown = [
        f"{c}::text" if types.get(kind, "string") == "string" and not kind.startswith("char(") else c
        for c, kind in columns.items()
    ]
    feed.connection.execute("SET timezone = 'UTC'; SET datestyle = 'ISO'")
    query = f"SELECT id, {', '.join(shown)} FROM t ORDER BY id"
    expected = [tuple(map(plain, row)) for row in feed.connection.execute(query)]
    table = collection.as_of().sort_by("id")
    found = [tuple(plain(row[name]) for name in ("id", *columns)) for row in table.to_pylist()]
    assert found == expected
    stored = {column.name: str(column.type) for column in collection.schema} if hasattr(collection, "schema") else {}
    for column, kind in columns.items():
        assert stored.get(column, types.get(kind, "string")) == types.get(kind, "string"), kind


def plain(value: Any) -> Any:
    return value.timestamp() if getattr(value, "tzinfo", None) is not None else value


@pytest.mark.postgres
def test_floats(feed: Feed) -> None:
    values = ["0.1", "1e308", "-0", "NaN", "Infinity", "-Infinity", "4.9e-324", "123456789.123456789"]
    feed.sql("CREATE TABLE t (id int PRIMARY KEY, d float8, r float4)", "CREATE TABLE f (d float8, r float4)")
    feed.sql("ALTER TABLE f REPLICA IDENTITY FULL")
    specs = feed.spec("t"), feed.spec("f")
    for round in range(2):
        for i, value in enumerate(values):
            real = value if abs(float(value)) < 1e38 or not math.isfinite(float(value)) else "0"
            real = "0" if value == "4.9e-324" else real
            feed.sql(
                f"INSERT INTO t VALUES ({round * 10 + i}, '{value}', '{real}'); INSERT INTO f VALUES ('{value}', '{real}')"
            )
        feed.run(*specs)
        feed.check("t", columns="id, d, r::float8")
        feed.check("f", columns="d, r::float8")
    feed.sql("DELETE FROM f WHERE d = 'NaN' OR d > 1", "UPDATE t SET r = 'NaN' WHERE id < 3")
    feed.run(*specs)
    feed.check("t", columns="id, d, r::float8")
    feed.check("f", columns="d, r::float8")


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("date", "infinity", "c .date. holds 'infinity'"),
        ("date", "0044-03-15 BC", "BC"),
        ("date", "10000-01-01", "10000-01-01"),
        ("timestamp", "-infinity", "'-infinity'"),
        ("timestamptz", "infinity", "'infinity'"),
        ("numeric(5,2)", "NaN", r"NaN.*decimal\(5,2\)"),
    ],
)
def test_values_that_spark_has_no_form_for(feed: Feed, kind: str, value: str, words: str) -> None:
    feed.sql(f"CREATE TABLE t (id int PRIMARY KEY, c {kind})")
    spec, as_text = feed.spec("t"), feed.spec("t", {"c": "string"})
    feed.run(spec)
    feed.sql(f"INSERT INTO t VALUES (1, '{value}')")
    with pytest.raises(SourceError, match=rf"(?s)public\.t: .*{words}.*data_type string"):
        feed.run(spec)
    feed.storage.collection("public.t").remove()
    feed.run(as_text)
    assert set(feed.rows("t")) == {(1, value)}
    feed.sql(f"INSERT INTO t VALUES (2, '{value}')")
    feed.run(as_text)
    assert set(feed.rows("t")) == {(1, value), (2, value)}


@pytest.mark.postgres
def test_declared_types(feed: Feed) -> None:
    feed.sql("CREATE TABLE t (id int PRIMARY KEY, n numeric, m numeric, at timestamp)")
    feed.sql("INSERT INTO t VALUES (1, 1.25, 7, '2024-01-01')")
    spec = feed.spec("t", {"n": "decimal(20,2)", "m": "bigint", "at": "timestamp"})
    feed.run(spec)
    ((row, _),) = feed.rows("t").items()
    assert [type(value).__name__ for value in row] == ["int", "Decimal", "int", "datetime"] and str(row[1]) == "1.25"
    feed.sql("INSERT INTO t VALUES (2, 1.255, 7, NULL)")
    with pytest.raises(SourceError, match=r"column n .numeric. holds '1\.255'"):
        feed.run(spec)
    for columns, words in (({"n": "date"}, "n .*declared date"), ({"nosuch": "int"}, "no column nosuch")):
        with pytest.raises(SourceError, match=words):
            feed.run(feed.spec("t", columns))
