"""Spark's types as values: their stored text, and what they are called elsewhere. Without Spark."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as pyspark

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import (
    BINARY,
    BYTE,
    CALENDAR_INTERVAL,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    Array,
    Atomic,
    Decimal,
    Field,
    Map,
    Struct,
    Type,
    from_json,
    parse,
)
from dbt_incremental_dd.duck.sql import duckdb_type
from dbt_incremental_dd.logical.sql_types import is_orderable, sql_type, type_of
from dbt_incremental_dd.trace.arrow import arrow_type

NAMES = [
    *("byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean", "date", "timestamp"),
    *("timestamp_ntz", "void", "variant", "calendarinterval", "char(3)", "varchar(10)", "time(6)", "decimal(38,0)"),
    *("decimal(5,-2)", "interval day to second", "interval year", "string collate UTF8_LCASE"),
    *("geometry(OGC:CRS84)", "geography(OGC:CRS84, SPHERICAL)"),
]
WORDS = st.sampled_from(["", "a", "A", "two words", 'ä"`', "\\", "\u2028\U0001f600", "type"])
METADATA = st.dictionaries(WORDS, st.sampled_from([None, True, 2**63, 0.5, "é", {"b": [], "a": {}}]), max_size=3)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    field = {"name": WORDS, "type": inner, "nullable": st.just(True), "metadata": METADATA}
    array = {"type": st.just("array"), "elementType": inner, "containsNull": st.just(True)}
    of_map = {"type": st.just("map"), "keyType": inner, "valueType": inner, "valueContainsNull": st.just(True)}
    struct = {"type": st.just("struct"), "fields": st.lists(st.fixed_dictionaries(field), max_size=3)}
    return st.one_of(*map(st.fixed_dictionaries, (array, of_map, struct)))


VALUES = st.recursive(st.sampled_from(NAMES), nested, max_leaves=6)


def canonical(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)


@settings(max_examples=50)
@given(VALUES)
def test_the_stored_text_is_the_same_to_the_byte(value: Any) -> None:
    text = canonical(value)
    found = parse(text)
    assert found.text == str(found) == text and found.json == value
    assert from_json(value) is found and parse(text) is found
    assert copy.deepcopy(found) is found and pickle.loads(pickle.dumps(found)) is found


@settings(max_examples=50)
@given(st.lists(VALUES, max_size=3))
def test_so_is_a_schema_s(values: list[Any]) -> None:
    """Of which fingerprints are made."""
    fields = [
        {"name": f"c{i}", "type": json.loads(canonical(v)) if isinstance(v, dict) else v, "nullable": True}
        for i, v in enumerate(values)
    ]
    text = json.dumps({"type": "struct", "fields": [{**field, "metadata": {}} for field in fields]})
    schema = Schema.from_json(text)
    assert schema == Schema(tuple(Column(f"c{i}", from_json(value)) for i, value in enumerate(values)))
    assert schema.to_json() == text


def test_types_that_differ_in_any_part_are_others() -> None:
    one = Field("x", LONG)
    fields = [one, Field("y", LONG), Field("x", INTEGER), Field("x", LONG, '{"a":1}')]
    types: list[Type] = [Struct((field,)) for field in fields]
    types += [Struct(()), Struct((one, one)), Array(LONG), Array(Array(LONG)), LONG]
    types += [Map(LONG, STRING), Map(STRING, LONG), Decimal(10, 2), Decimal(10, 1)]
    assert len(set(types)) == len(types)


def test_those_that_do_not_are_one() -> None:
    assert Decimal(10, 2) is parse("decimal(10,2)") is from_json("decimal(10, 2)")
    assert Array(LONG) is Array(Atomic("long")) is Array(element=parse("long"))
    assert LONG != "long" and Atomic("decimal(10,2)") != Decimal(10, 2)


def test_what_is_never_null_is_not_part_of_a_type() -> None:
    """Spark says so by the plan that it sees, and a model's plan is not the one of its query."""
    kind = pyspark.ArrayType(pyspark.MapType(pyspark.StringType(), pyspark.LongType(), False), False)
    never = pyspark.StructType().add("x", kind, False)
    always = Struct((Field("x", Array(Map(STRING, LONG))),))
    assert parse(never.json()) is from_json(json.loads(never.json())) is always


def test_spark_reads_and_writes_the_same() -> None:
    of = pyspark.StructType()
    kinds = [pyspark.ByteType(), pyspark.ShortType(), pyspark.IntegerType(), pyspark.LongType(), pyspark.FloatType()]
    kinds += [pyspark.DoubleType(), pyspark.StringType(), pyspark.BinaryType(), pyspark.BooleanType()]
    kinds += [pyspark.DateType(), pyspark.TimestampType(), pyspark.TimestampNTZType(), pyspark.NullType()]
    kinds += [pyspark.DecimalType(20, 3), pyspark.CharType(3), pyspark.VarcharType(4), pyspark.VariantType()]
    kinds += [pyspark.DayTimeIntervalType(), pyspark.YearMonthIntervalType(), pyspark.CalendarIntervalType()]
    for i, kind in enumerate(kinds):
        of = of.add(f"c{i}", pyspark.ArrayType(pyspark.MapType(pyspark.StringType(), kind)), True, {"x": i})
    found = parse(of.json())
    assert found.text == of.json() and pyspark.StructType.fromJson(found.json) == of


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "long x",
            "LONG",
            "decimal(1",
            "decimal(10)",
            "decimal(a,b)",
            "a--",
            "`x`",
            "interval day;",
            "array<int>",
        ),
        *('["long"]', "{", "{}", '{"type":"udt"}', '{"type":"array"}', '{"type":"array","elementType":"long"}'),
        '{"containsNull":1,"elementType":"long","type":"array"}',
        '{"containsNull":true,"elementType":"{}","type":"array"}',
        '{"containsNull":true,"elementType":{"type":"udt"},"type":"array"}',
        '{"keyType":"x y","type":"map","valueContainsNull":true,"valueType":"long"}',
        '{"fields":{},"type":"struct"}',
        '{"fields":["long"],"type":"struct"}',
        '{"fields":[{"name":"x","nullable":true,"metadata":{}}],"type":"struct"}',
        '{"fields":[{"name":1,"type":"long","nullable":true,"metadata":{}}],"type":"struct"}',
        '{"fields":[{"name":"x","type":"long","nullable":true,"metadata":"{}"}],"type":"struct"}',
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


STRUCTS = Array(Struct((Field("a`b", Decimal(9, 2)), Field('c"d', Map(STRING, LONG)))))


@pytest.mark.parametrize(
    ("type", "sql", "duckdb", "arrow"),
    [
        (BYTE, "TINYINT", "TINYINT", pa.int8()),
        (SHORT, "SMALLINT", "SMALLINT", pa.int16()),
        (INTEGER, "INT", "INTEGER", pa.int32()),
        (LONG, "BIGINT", "BIGINT", pa.int64()),
        (FLOAT, "FLOAT", "REAL", pa.float32()),
        (DOUBLE, "DOUBLE", "DOUBLE", pa.float64()),
        (STRING, "STRING", "VARCHAR", pa.string()),
        (BINARY, "BINARY", "BLOB", pa.binary()),
        (DATE, "DATE", "DATE", pa.date32()),
        (TIMESTAMP, "TIMESTAMP", "TIMESTAMPTZ", pa.timestamp("us", "UTC")),
        (TIMESTAMP_NTZ, "TIMESTAMP_NTZ", "TIMESTAMP", pa.timestamp("us")),
        (VOID, "VOID", "VARCHAR", None),
        (Decimal(38, 10), "DECIMAL(38,10)", "DECIMAL(38,10)", pa.decimal128(38, 10)),
    ],
)
def test_what_they_are_elsewhere(type: Type, sql: str, duckdb: str, arrow: pa.DataType | None) -> None:
    assert (sql_type(type), duckdb_type(type), arrow_type(type)) == (sql, duckdb, arrow)
    assert type_of(sql) == type and is_orderable(type)


def test_what_those_with_parts_are_elsewhere() -> None:
    assert sql_type(STRUCTS) == 'ARRAY<STRUCT<`a``b`: DECIMAL(9,2), `c"d`: MAP<STRING, BIGINT>>>'
    assert duckdb_type(STRUCTS) == 'STRUCT("a`b" DECIMAL(9,2), "c""d" MAP(VARCHAR, BIGINT))[]'
    assert arrow_type(Struct(())) is None and arrow_type(Array(VARIANT)) is None
    flat = Struct((Field("a", LONG), Field("b", Decimal(9, 2))))
    assert arrow_type(flat) == pa.struct([("a", pa.int64()), ("b", pa.decimal128(9, 2))])
    entries = [("a`b", pa.decimal128(9, 2)), ('c"d', pa.map_(pa.string(), pa.int64()))]
    assert arrow_type(STRUCTS) == pa.list_(pa.struct(entries))
    assert is_orderable(flat) and is_orderable(Array(flat)) and not is_orderable(STRUCTS)
    assert not is_orderable(VARIANT) and not is_orderable(CALENDAR_INTERVAL) and not is_orderable(Array(VARIANT))


def test_decimals_in_sql() -> None:
    texts = {"DECIMAL": Decimal(10, 0), "decimal(12)": Decimal(12, 0), "DECIMAL(12, 2)": Decimal(12, 2)}
    assert {text: type_of(text) for text in texts} == texts
    for text in ("DECIMAL(a)", "DECIMAL(39)", "DECIMAL(2, 3)", "VARCHAR(3)", "INT INT", "NUMBER", "a.b"):
        with pytest.raises(ValueError):
            type_of(text)


def test_types_with_parts_in_sql() -> None:
    row = Struct((Field("a", INTEGER), Field("b c", Array(STRING)), Field("d", Map(STRING, Decimal(3, 1)))))
    assert type_of("struct<a int, `b c`: array<string>,d:MAP<string,decimal(3,1)>>") == row
    for text in ("array<int", "struct<>", "struct<a int not null>", "map<int>", "struct<a: int, >"):
        with pytest.raises(ValueError):
            type_of(text)
