"""Lines of JSON read on the driver are what Spark reads, or are left to Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    Decimal,
    Field,
    Map,
    Struct,
)
from dbt_incremental_dd.local.zones import moments_in
from dbt_incremental_dd.sources.formats.json_lines import parse
from dbt_incremental_dd.sources.records import CORRUPT
from dbt_incremental_dd.trace.spark_reader import struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOMENTS = moments_in(lambda: os.environ["TZ"])
"""In the time zone of the suite's sessions."""
STORED = Schema(
    (
        Column("i", INTEGER),
        Column("l", LONG),
        Column("s", STRING),
        Column("b", BOOLEAN),
        Column("d", DOUBLE),
    )
)
LINES = [
    '{"i": 1, "l": -9223372036854775808, "s": "a", "b": true, "d": 1.5}',
    '{"s": null, "d": 3, "other": {"x": [1, {"y": 2}]}}',
    "{}",
    ' {"i" : -0 , "s":"\\u00e9\\ud83d\\ude00 \\" \\n \\/ \\t" } ',
    '{"s": "é 😀 \u2028 \u0085"}',
    '{"d": 1e-320, "l": 9223372036854775807}',
    '{"d": 0.1, "s": ""}',
    '{"d": -0.0}',
    '{"d": 123456789012345678}',
    '{"i": 2147483648}',
    '{"l": 9223372036854775808}',
    '{"l": 1.0}',
    '{"l": 1e3}',
    '{"l": "1"}',
    '{"l": ""}',
    '{"l": true}',
    '{"s": 1}',
    '{"s": {"a": 1}}',
    '{"s": [1, 2.0]}',
    '{"b": "true"}',
    '{"b": 1}',
    '{"d": "1.5"}',
    '{"d": NaN}',
    '{"d": 1e999}',
    '{"d": "NaN"}',
    '{"I": 1}',
    '{"i": 1, "i": 2}',
    '{"i": 01}',
    "{'i': 1}",
    '{"i": 1,}',
    '{"i": 1} {"i": 2}',
    '[{"i": 1}]',
    "null",
    "",
    "   ",
    "1",
    "no json",
    '{"i": 1',
    '{"s": "\\ud83d"}',
    '{"s": "a\tb"}',
    '{"s": "a\rb"}',
    '{"other": NaN, "i": 1}',
    '{"dd_corrupt": "x"}',
    '{"DD_corrupt": "x"}',
    '\ufeff{"i": 1}',
    '{"i": ' + "1" * 400 + "}",
]
SAFE = 9
"""So many of the first lines are read on the driver."""


def by_spark(spark: SparkSession, path: Path) -> list[tuple[Any, ...]]:
    """As the source reads it; the texts of malformed records come last."""
    schema = struct(Schema((*STORED.columns, Column(CORRUPT, STRING))))
    frame = spark.read.option("columnNameOfCorruptRecord", CORRUPT).schema(schema).json(str(path))
    return [tuple(row) for row in frame.collect()]


@pytest.mark.parametrize("line", LINES)
def test_odd_lines(spark: SparkSession, tmp_path: Path, line: str) -> None:
    data = (line + "\n").encode(errors="surrogatepass")
    (tmp_path / "a.json").write_bytes(data)
    found = parse(data, STORED, MOMENTS)
    assert (found is not None) == (line in LINES[: SAFE - 1])
    if found is not None:
        rows = [(*row.values(), None) for row in found.to_pylist()]
        assert repr(rows) == repr(by_spark(spark, tmp_path / "a.json"))


def test_lines_of_windows(spark: SparkSession, tmp_path: Path) -> None:
    data = b'{"i": 1, "s": "a"}\r\n{"i": 2}\r\n'
    (tmp_path / "a.json").write_bytes(data)
    found = parse(data, STORED, MOMENTS)
    assert found is not None
    assert repr([(*row.values(), None) for row in found.to_pylist()]) == repr(by_spark(spark, tmp_path / "a.json"))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.integers(-100, 100),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
)
RECORDS = st.dictionaries(st.sampled_from(["i", "l", "s", "b", "d", "S", "x", CORRUPT]), VALUES, max_size=5)
FITTING = st.fixed_dictionaries(
    {},
    optional={
        "i": st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
        "l": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
        "s": st.none() | st.text(),
        "b": st.none() | st.booleans(),
        "d": st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1000, 1000),
        "x": VALUES.filter(lambda value: not isinstance(value, float)),
    },
)


@settings(max_examples=40)
@given(st.lists(FITTING, min_size=1, max_size=20) | st.lists(RECORDS, min_size=1, max_size=3), st.booleans())
def test_random_lines(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], ascii: bool
) -> None:
    data = "".join(json.dumps(record, ensure_ascii=ascii) + "\n" for record in records).encode(errors="replace")
    found = parse(data, STORED, MOMENTS)
    if found is None:
        return
    path = tmp_path_factory.mktemp("lines") / "a.json"
    path.write_bytes(data)
    assert repr([(*row.values(), None) for row in found.to_pylist()]) == repr(by_spark(spark, path))


def test_what_is_read_on_the_driver() -> None:
    lines = "\n".join(LINES[: SAFE - 1]) + "\n"
    found = parse(lines.encode(), STORED, MOMENTS)
    assert found is not None and found.num_rows == SAFE - 1
    assert parse(lines.encode(), Schema((Column("t", Array(VARIANT)),)), MOMENTS) is None
    empty = parse(b"{}", STORED, MOMENTS)
    assert empty is not None and empty.to_pylist() == [dict.fromkeys("ilsbd")]


NESTED = Schema(
    (
        Column("e", Struct((Field("a", LONG), Field("r", Struct((Field("s", STRING), Field("d", Decimal(6, 2)))))))),
        Column("d", Decimal(6, 2)),
        Column("t", Array(Struct((Field("a", LONG), Field("s", Array(STRING)))))),
        Column("m", Map(STRING, DOUBLE)),
    )
)
DECIMALS = [
    None,
    "1.5",
    "-0.00",
    "1234.56",
    "12345.6",
    "1.555",
    "01.5",
    " 1",
    "",
    "1e2",
    2,
    -7,
    12345,
    2.5,
    True,
    0.1,
    -0.0,
    1.255,
]
INNER = st.none() | st.fixed_dictionaries(
    {},
    optional={"s": st.none() | st.text(max_size=3), "d": st.sampled_from(DECIMALS), "S": st.just(1), "x": st.just({})},
)
OUTER = st.none() | st.fixed_dictionaries({}, optional={"a": st.none() | st.integers(-5, 5), "r": INNER})
TEXTS_OF = st.none() | st.lists(st.none() | st.text(max_size=2), max_size=3) | st.sampled_from(["", {}, [1], [[]]])
ITEM = st.none() | st.fixed_dictionaries({}, optional={"a": st.none() | st.integers(-5, 5), "s": TEXTS_OF})
MAP = st.dictionaries(st.text(max_size=2), st.none() | st.floats(-9, 9) | st.sampled_from(["x", [], 7]), max_size=2)
EVENTS = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "e": OUTER,
        "d": st.sampled_from(DECIMALS[:4]),
        "t": st.none() | st.lists(ITEM, max_size=3) | st.just({}),
        "m": st.none() | MAP,
    },
)


@settings(max_examples=60)
@given(st.lists(EVENTS, min_size=1, max_size=6))
def test_structs_and_decimals(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any] | None]
) -> None:
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    found = parse(data, NESTED, MOMENTS, ignores_nulls=True)
    if found is None:
        return
    path = tmp_path_factory.mktemp("lines") / "a.json"
    path.write_bytes(data)
    schema = struct(Schema((*NESTED.columns, Column(CORRUPT, STRING))))
    answer = spark.read.option("columnNameOfCorruptRecord", CORRUPT).schema(schema).json(str(path)).toArrow()
    assert {text for text in answer[CORRUPT].to_pylist() if text is not None} <= {"null"}
    wanted = [row for row in answer.to_pylist() if row.pop(CORRUPT) is None]
    assert found.to_pylist() == wanted


def test_which_nested_lines_are_read_on_the_driver() -> None:
    read_here = ['{"e": {"a": 1, "r": {"s": "x", "d": "1.50", "other": [1]}}, "d": 3}', '{"e": null}', "{}", "null"]
    read_here += ['{"t": [{"a": 1, "s": ["x", null]}, null, {}], "m": {"k": 1, "": 2.5}}', '{"t": [], "m": {}}']
    assert parse("\n".join(read_here).encode(), NESTED, MOMENTS, ignores_nulls=True) is not None
    assert parse(b"null\n", NESTED, MOMENTS) is None
    for line in (
        '{"e": []}',
        '{"e": {"r": {"S": 1}}}',
        '{"d": 1.555}',
        '{"d": 1.5e0}',
        '{"d": "x"}',
        '{"e": {"a": 1, "a": 2}}',
        '{"t": {"a": 1}}',
        '{"t": [[]]}',
        '{"t": [{"s": [1]}]}',
        '{"m": []}',
        '{"m": {"k": 1, "k": 2}}',
    ):
        assert parse(line.encode(), NESTED, MOMENTS, ignores_nulls=True) is None


TIMES = Schema((Column("t", TIMESTAMP), Column("n", TIMESTAMP_NTZ), Column("y", DATE), Column("m", Decimal(12, 2))))
TEXTS = [
    *(
        "2024-01-05T10:00:00Z",
        "2024-01-05 10:00:00.123456+05:30",
        "2024-01-05T10:00:00.1-08:00",
        "1600-01-01T00:00:00Z",
    ),
    *("2024-03-10 02:30:00", "2024-11-03 01:30:00", "2024-07-05 10:00:00.25", "1999-12-31 23:59:59", "2038-01-01"),
    *("2024-01-05T10:00:00", "2024-01-05 10:00:00.5", "2024-01-05", "2024-02-30", "2024-1-5", "", "now", "10:00:00"),
    *("2024-07-01T10:00:00Z ", "2024-01-05T10:00Z", "0999-01-01T00:00:00Z", "2024-01-05T10:00:00+01", "9999-12-31"),
    *(1704448800, 1704448800.5, 1704448800000, 0, True, 5.00, -12.5, 1e3, "5.00", None),
]


@pytest.mark.parametrize("column", TIMES.names)
@pytest.mark.parametrize("value", TEXTS, ids=repr)
def test_times_and_decimals(spark: SparkSession, tmp_path: Path, column: str, value: Any) -> None:
    data = (json.dumps({column: value}) + "\n").encode()
    found = parse(data, TIMES, MOMENTS)
    if found is not None:
        (tmp_path / "a.json").write_bytes(data)
        schema = struct(Schema((*TIMES.columns, Column(CORRUPT, STRING))))
        answer = spark.read.option("columnNameOfCorruptRecord", CORRUPT).schema(schema).json(str(tmp_path)).toArrow()
        assert answer.drop([CORRUPT]).to_pylist() == found.to_pylist()
        assert answer[CORRUPT].to_pylist() == [None]


def test_which_times_are_read_on_the_driver() -> None:
    line = b'{"t": "2024-01-05 10:00:00", "n": "2024-01-05 10:00:00.25", "y": "2024-01-05", "m": 5.00}'
    found = parse(line, TIMES, MOMENTS)
    assert found is not None and found["m"].to_pylist() == [5]
