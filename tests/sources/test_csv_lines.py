"""Lines of CSV read on the driver are what Spark reads, or are left to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import (
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Type,
)
from dbt_incremental_dd.local.zones import moments_in
from dbt_incremental_dd.relation.lazy_session import TIME_ZONE, LazySession
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.config import parse_source
from dbt_incremental_dd.sources.connectors.files.reader import FilesToRead, read
from dbt_incremental_dd.sources.connectors.files.spec import FilesSpec
from dbt_incremental_dd.sources.formats.csv_lines import parse
from dbt_incremental_dd.sources.records import CORRUPT, FILE
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS: dict[Type, list[str]] = {
    INTEGER: ["0", "-1", "2147483647", "2147483648", "1.0", "+1", " 1", "1 ", "-0", "01", "1e3", "x", ""],
    BYTE: ["127", "-128", "128", ""],
    LONG: ["9223372036854775807", "123456789012345678", "-5", "1L", ""],
    Decimal(6, 2): ["1.5", "-0.00", "1234.56", "12345.6", "1.555", ".5", "5.", "1e2", "+1", "0", "-9999.99", ""],
    Decimal(3, 3): ["0.123", "0", "-0.5", "1", "0.1234"],
    Decimal(4, 0): ["1234", "12345", "1.0", "-7"],
    DOUBLE: ["0.1", "-0", "1e10", "123456789012345.5", "NaN", "Infinity", "-Inf", "1.7976931348623157e308", ".5", ""],
    BOOLEAN: ["true", "false", "True", "1", "yes", ""],
    DATE: ["2024-02-29", "2023-02-29", "2024-1-1", "0001-01-01", "1582-10-10", "9999-12-31", "2024-01-01 ", "today"],
    TIMESTAMP: [
        "2024-01-01T00:00:00Z",
        "2024-01-01 10:20:30.123456+05:30",
        "2024-07-04 12:30:00.25",
        "2024-03-10 02:30:00",
        "2024-11-03 01:30:00",
        "1999-01-01 00:00:00",
        "2024-01-01",
        "2024-1-1",
        "2024-01-01 10:20",
        "2024-01-01T00:00:00.1234567Z",
        "2024-01-01T00:00:00.1234567",
        "2024-01-01T24:00:00Z",
        "2024-01-01T00:00:00-17:59",
        "now",
    ],
    TIMESTAMP_NTZ: ["2024-01-01T00:00:00", "2024-01-01 10:20:30.5", "2024-01-01T00:00:00Z", "2024-13-01 00:00:00"],
    STRING: [
        "a",
        "é 😀",
        " a ",
        "#x",
        "null",
        "",
        "\t",
        "'a'",
        'q"q',
        '"a"',
        "a\\b",
        "\u2028",
        "ab\x00c",
        "_c0",
        "NULL",
    ],
}


def by_spark(spark: SparkSession, path: Path, schema: Schema, options: dict[str, str]) -> list[tuple[Any, ...]] | None:
    """As the source reads it; None where something is malformed."""
    settings = {"path": str(path.parent), "format": "csv", "envelope": "append", "options": options}
    spec = parse_source("s.t", "s.t", settings, {}, str(path.parent))
    assert isinstance(spec, FilesSpec)
    workspace = Workspace(LazySession.of(spark), Storage(str(path.parent)))
    frame = read(workspace, spec, FilesToRead([str(path)]), schema)
    assert [(c.name, c.type) for c in schema_of(frame.drop(CORRUPT, FILE).schema)] == [(c.name, c.type) for c in schema]
    found = frame.toArrow()
    if found[CORRUPT].null_count < found.num_rows:
        return None
    return [tuple(row.values()) for row in found.drop_columns([CORRUPT, FILE]).to_pylist()]


def check(spark: SparkSession, path: Path, schema: Schema, lines: list[str], options: dict[str, str]) -> bool:
    """Whether the driver reads it; what it reads is what Spark reads."""
    data = "".join(line + "\n" for line in lines).encode(errors="surrogatepass")
    found = parse(data, schema, options, moments_in(lambda: str(spark.conf.get(TIME_ZONE))))
    if found is None:
        return False
    path.write_bytes(data)
    wanted = by_spark(spark, path, schema, options)
    assert wanted is not None
    assert sorted(repr(tuple(row.values())) for row in found.to_pylist()) == sorted(map(repr, wanted))
    return True


@pytest.mark.parametrize("dtype", TEXTS, ids=str)
def test_texts(spark: SparkSession, tmp_path: Path, dtype: Type) -> None:
    schema = Schema((Column("a", INTEGER), Column("b", dtype)))
    read_here = [
        text for n, text in enumerate(TEXTS[dtype]) if check(spark, tmp_path / f"{n}.csv", schema, [f"1,{text}"], {})
    ]
    assert read_here, "the driver reads none"
    assert check(spark, tmp_path / "all.csv", schema, [f"1,{text}" for text in read_here], {})


@pytest.mark.parametrize(
    "lines",
    [
        ["a,b", "1,x"],
        ["a,b"],
        [],
        ["A,b", "1,x"],
        ["b,a", "x,1"],
        ["a,b", "1"],
        ["a,b", "1,x,2"],
        ["a,b", "", "1,x"],
        ["a,b", ",", "1,"],
        ["\ufeffa,b", "1,x"],
        ["a,b", "1,x\r"],
        ["a,b\r", "1,x\r", ",\r"],
        ["a,b\r", "1,x\r\r"],
        ["a;b", "1;x"],
        ['"a","b"', '1,"x, y"'],
        ["a,b", '"1"," x "', '2,"a;b"', '3,"é"'],
        ["a,b", '1,""'],
        ["a,b", '1,"a""b"'],
        ["a,b", '1,"a"b'],
        ["a,b", '1, "a"'],
        ["a,b", '1,"a" '],
        ["a,b", '1,a"b'],
        ["a,b", '1,"a', 'b"'],
        ["a,b", '1,"a\\"'],
        ["a,b", '"1",x', '" 2",y'],
        ["a,b", '1,"null"', '2,"NULL"'],
    ],
)
@pytest.mark.parametrize("options", [{"header": "true"}, {"header": "true", "sep": ";"}, {"Header": "True"}])
def test_headers_and_lengths(spark: SparkSession, tmp_path: Path, lines: list[str], options: dict[str, str]) -> None:
    schema = Schema((Column("a", INTEGER), Column("b", STRING)))
    check(spark, tmp_path / "a.csv", schema, lines, options)


def test_plain_quotes_are_read_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((Column("a", INTEGER), Column("b", STRING), Column("c", TIMESTAMP), Column("d", Decimal(6, 2))))
    lines = ['"a",b,"c",d', '1,"x, y",2024-01-05 10:00:00,1.5', '"2",,"2024-07-05T10:00:00","-3.25"']
    assert check(spark, tmp_path / "a.csv", schema, lines, {"header": "true"})


def test_options_that_the_driver_does_not_know(tmp_path: Path) -> None:
    schema = Schema((Column("a", STRING),))
    for options in ({"nullValue": "x"}, {"quote": "'"}, {"dateFormat": "yyyy"}, {"sep": "::"}, {"multiLine": "true"}):
        assert parse(b"x\n", schema, options, moments_in(str)) is None
    assert parse(b"x\n", schema, {"header": "false"}, moments_in(str)) is not None


@given(
    st.lists(st.sampled_from(sorted(TEXTS, key=str)), min_size=1, max_size=4).flatmap(
        lambda types: st.tuples(
            st.just(types), st.lists(st.tuples(*(st.sampled_from(TEXTS[t][:3]) for t in types)), max_size=8)
        )
    )
)
def test_random_files(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    given: tuple[list[Type], list[tuple[str, ...]]],
) -> None:
    types, rows = given
    schema = Schema(tuple(Column(f"c{n}", dtype) for n, dtype in enumerate(types)))
    lines = [",".join(row) for row in rows]
    check(spark, tmp_path_factory.mktemp("csv") / "a.csv", schema, lines, {})
