"""Texts that no feed should have: each is in as it is, or an error, or set aside. Nothing is left out in silence."""

from __future__ import annotations

import base64
import codecs
import gzip
import json
import os
import pickle
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_incremental_dd.core.errors import ConfigError, DifferentialError, SourceError
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.local.zones import moments_in
from dbt_incremental_dd.relation.lazy_session import LazySession
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.sources.config import SourceSpec, parse_source
from dbt_incremental_dd.sources.connectors.files.reader import FilesToRead, read
from dbt_incremental_dd.sources.formats.json_lines import is_plain, parse
from dbt_incremental_dd.sources.records import CORRUPT, FILE
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.spark_reader import schema_of
from tests.sources.test_intake import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INF = float("inf")
BAD = "malformed"
COLUMNS = {
    "id": "bigint",
    "v": "string",
    "d": "double",
    "f": "float",
    "st": "struct<a:int,x:double>",
    "ar": "array<double>",
}
DRIVERS = {name: COLUMNS[name] for name in ("id", "v", "d")}
"""Columns that the driver's reader has as well."""

LINES: dict[str, tuple[bytes, Any]] = {
    "a record": (b'{"id":1,"v":"a"}\n', [{"id": 1, "v": "a"}]),
    "two values": (b'{"id":1} {"id":2}\n', BAD),
    "two values, a comma": (b'{"id":1},{"id":2}\n', BAD),
    "words behind": (b'{"id":1} xyz\n', BAD),
    "a brace behind": (b'{"id":1}}\n', BAD),
    "a bracket behind": (b'{"id":1}]\n', BAD),
    "both behind": (b'{"id":1}}] [{\n', BAD),
    "a comma behind": (b'{"id":1},\n', BAD),
    "a comment behind": (b'{"id":1} // more\n', BAD),
    "a hash behind": (b'{"id":1} # more\n', BAD),
    "NUL behind": (b'{"id":1}\0\n', BAD),
    "NUL and a value behind": (b'{"id":1}\0{"id":2}\n', BAD),
    "another byte behind": (b'{"id":1} \xe9\n', BAD),
    "spaces of Unicode behind": ('{"id":1}\u00a0\n'.encode(), BAD),
    "spaces around": (b'\t {"id":1} \t\n', [{"id": 1}]),
    "a name twice": (b'{"id":1,"id":2}\n', BAD),
    "a name twice, escaped": (b'{"id":1,"\\u0069d":2}\n', BAD),
    "a name twice inside": (b'{"id":1,"st":{"a":1,"a":2}}\n', BAD),
    "a name twice in what is left out": (b'{"id":1,"z":{"a":1,"a":2}}\n', BAD),
    "Latin-1": (b'{"id":1,"v":"\xe9"}\n', BAD),
    "Latin-1 in a name": (b'{"id":1,"\xe9":"x"}\n', BAD),
    "Latin-1 in what is left out": (b'{"id":1,"z":"\xe9"}\n', BAD),
    "overlong UTF-8": (b'{"id":1,"v":"\xc0\xaf"}\n', BAD),
    "a surrogate's bytes": (b'{"id":1,"v":"\xed\xa0\xbd"}\n', BAD),
    "a lone surrogate": (b'{"id":1,"v":"\\ud83d"}\n', BAD),
    "a lone low surrogate": (b'{"id":1,"v":"x\\uDE00\\ud83d"}\n', BAD),
    "a lone surrogate left out": (b'{"id":1,"z":"\\ud83dx"}\n', BAD),
    "a pair of surrogates": (b'{"id":1,"v":"\\ud83d\\ude00"}\n', [{"id": 1, "v": "\U0001f600"}]),
    "a backslash before a word": (b'{"id":1,"v":"\\\\ud83d"}\n', [{"id": 1, "v": "\\ud83d"}]),
    "U+FFFD itself": ('{"id":1,"v":"\ufffd"}\n'.encode(), [{"id": 1, "v": "\ufffd"}]),
    "NUL, escaped": (b'{"id":1,"v":"a\\u0000b"}\n', [{"id": 1, "v": "a\0b"}]),
    "NUL": (b'{"id":1,"v":"a\0b"}\n', BAD),
    "a control character": (b'{"id":1,"v":"a\x01b"}\n', BAD),
    "a comma at the end": (b'{"id":1,}\n', BAD),
    "an array": (b'[{"id":1},{"id":2}]\n', BAD),
    "an array of one": (b'[{"id":1}]\n', BAD),
    "an empty array": (b"[]\n", BAD),
    "null": (b"null\n", BAD),
    "a number": (b"1\n", BAD),
    "a text": (b'"a"\n', BAD),
    "single quotes": (b"{'id':1}\n", BAD),
    "no quotes": (b"{id:1}\n", BAD),
    "a zero before": (b'{"id":01}\n', BAD),
    "a plus before": (b'{"id":+1}\n', BAD),
    "too large a number": (b'{"id":9223372036854775808}\n', BAD),
    "a fraction": (b'{"id":1.0}\n', BAD),
    "too large a double": (b'{"id":1,"d":1e999}\n', BAD),
    "too large a double, negative": (b'{"id":1,"d":-1e999}\n', BAD),
    "too large a float": (b'{"id":1,"f":1e300}\n', BAD),
    "too large a double inside": (b'{"id":1,"st":{"x":1e999}}\n', BAD),
    "too large a double in an array": (b'{"id":1,"ar":[1,1e999]}\n', BAD),
    "an element of another type": (b'{"id":1,"ar":[1,"x"]}\n', BAD),
    "a field of another type": (b'{"id":1,"st":{"a":"x"}}\n', BAD),
    "infinity": (b'{"id":1,"d":Infinity}\n', [{"id": 1, "d": INF}]),
    "minus infinity": (b'{"id":1,"d": -INF }\n', [{"id": 1, "d": -INF}]),
    "infinity as text": (b'{"id":1,"v":"NaN, Infinity]"}\n', [{"id": 1, "v": "NaN, Infinity]"}]),
    "a mark at the beginning": (codecs.BOM_UTF8 + b'{"id":1}\n', [{"id": 1}]),
    "CRLF": (b'{"id":1}\r\n{"id":2}\r\n', [{"id": 1}, {"id": 2}]),
    "CR": (b'{"id":1}\r{"id":2}\r', [{"id": 1}, {"id": 2}]),
    "no end of the last line": (b'{"id":1}\n{"id":2}', [{"id": 1}, {"id": 2}]),
    "empty lines": (b'\n  \n{"id":1}\n\r\n\n', [{"id": 1}]),
    "a record that was cut": (b'{"id":1', BAD),
    "UTF-16": ('{"id":1}\n'.encode("utf-16"), BAD),
    "UTF-16 without a mark": ('{"id":1}\n'.encode("utf-16-le"), BAD),
    "text of numbers": (b'{"id":1,"v":1.10}\n', [{"id": 1, "v": "1.10"}]),
    "a long text": (b'{"id":1,"v":"' + b"x" * 300_000 + b'"}\n', [{"id": 1, "v": "x" * 300_000}]),
}


def filled(row: dict[str, Any]) -> dict[str, Any]:
    """With NULL for what is left out."""
    return {**dict.fromkeys(COLUMNS), **row}


def test_lines_of_json(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's reader, for all at once; the driver's says the same, or leaves a text to Spark."""
    names = list(LINES)
    for number, name in enumerate(names):
        (tmp_path / f"{number}.json").write_bytes(LINES[name][0])
    spec = parse_source("s.t", "s.t", {"path": str(tmp_path), "format": "json"}, COLUMNS, "/")
    uris = [str(tmp_path / f"{i}.json") for i in range(len(names))]
    plain = [uri for uri, name in zip(uris, names, strict=True) if is_plain(LINES[name][0])]
    for which, is_looked_through in ((uris, False), (plain, True)):
        check_lines(spark, spec, tmp_path, which, is_looked_through)
    stored = schema_of(spark.createDataFrame([], ", ".join(f"{k} {v}" for k, v in DRIVERS.items())).schema)
    read_on_the_driver = {name for name, (data, wanted) in LINES.items() if on_the_driver(data, wanted, stored)}
    assert {"a record", "a pair of surrogates", "no end of the last line"} <= read_on_the_driver
    assert {"a record", "CRLF", "infinity", "too large a number"} <= {
        name for name in names if is_plain(LINES[name][0])
    }


def check_lines(spark: SparkSession, spec: SourceSpec, folder: Path, uris: list[str], is_plain: bool) -> None:
    """Each file is in, or malformed."""
    names = list(LINES)
    workspace = Workspace(LazySession.of(spark), Storage(str(folder)))
    frame = read(workspace, spec, FilesToRead(uris, aside=str(folder / str(is_plain)), is_plain=is_plain), None)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in frame.collect():
        values = row.asDict()
        number = int(values.pop(FILE).rsplit("/", 1)[-1].removesuffix(".json"))
        found[names[number]].append(values)
    looked_at = [names[int(Path(uri).stem)] for uri in uris]
    wrong = [name for name in looked_at if not is_as_wanted(found[name], LINES[name][1])]
    assert not wrong, {name: found[name] for name in wrong}


def is_as_wanted(rows: list[dict[str, Any]], wanted: Any) -> bool:
    """A malformed text has at least one record that says so."""
    if wanted == BAD:
        return any(row[CORRUPT] is not None for row in rows)
    return [{k: v for k, v in row.items() if k != CORRUPT} for row in rows] == [filled(row) for row in wanted] and all(
        row[CORRUPT] is None for row in rows
    )


def on_the_driver(data: bytes, wanted: Any, stored: Schema) -> bool:
    """Whether the driver reads it; then as it should. It is asked without the columns that are not for it."""
    if wanted == BAD and any(f'"{name}":'.encode() in data for name in COLUMNS.keys() - DRIVERS.keys()):
        return False
    table = parse(data, stored, moments_in(str))
    if table is None:
        return False
    rows = [] if wanted == BAD else [{k: v for k, v in filled(row).items() if k in DRIVERS} for row in wanted]
    assert table.to_pylist() == rows
    return True


NASTY = [b'{"id":7,"v":"a","pos":1} {"id":8}\n', b'{"id":7,"v":"\xe9","pos":1}\n', b'{"id":7,"id":8,"v":"a","pos":1}\n']
EVENTS = [
    b'{"op":"c","after":{"id":7,"v":"a","pos":1}} {}\n',
    b'{"op":"c","after":{"id":7,"v":"\xe9","pos":1}}\n',
    b'{"payload":{"op":"c","after":{"id":7,"v":"a","v":"b","pos":1}}}\n',
]
GOOD = b'{"id":%d,"v":"a","pos":1}\n'
ENVELOPES: dict[str, dict[str, Any]] = {
    "append": {},
    "upsert": {"key": "id"},
    "changelog": {"diff_column": "pos"},
    "debezium": {"key": "id"},
    "snapshot": {},
}


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_bad_lines_are_told_or_set_aside(spark: SparkSession, tmp_path: Path, envelope: str) -> None:
    good, nasty = (b'{"op":"c","after":' + GOOD.strip() + b"}\n", EVENTS) if envelope == "debezium" else (GOOD, NASTY)
    reader = Reader(spark, tmp_path, envelope=envelope, **ENVELOPES[envelope])
    (tmp_path / "in" / "1.json").write_bytes(good % 1)
    reader.take()
    before = reader.rows()
    (tmp_path / "in" / "2.json").write_bytes(good % 2 + b"".join(nasty))
    with pytest.raises(SourceError, match=r"3 record\(s\) do not fit its columns:\n.*2\.json"):
        reader.take()
    assert reader.rows() == before
    aside = Reader(spark, tmp_path, envelope=envelope, malformed="set_aside", **ENVELOPES[envelope])
    aside.storage, aside.time = reader.storage, reader.time
    aside.take()
    assert reader.rows().total() == 2 and any("3 malformed record(s)" in note for note in aside.notes)


def csv(reader: Reader, name: str, data: bytes) -> None:
    """A file more."""
    (reader.folder / "in" / name).write_bytes(data)


CSV = {"envelope": "append", "format": "csv"}


@pytest.mark.parametrize("number", range(3))
def test_csv_that_is_not_utf8(spark: SparkSession, tmp_path: Path, number: int) -> None:
    bad = [b"2,\xe9,1\n", b"2,\xc3,1\n", b"2,\xed\xa0\xbd,1\n"][number]
    data = "1,\u00e9,1\n".encode() + bad + b"3,c,1\n"
    reader = Reader(spark, tmp_path, **CSV)
    csv(reader, "1.csv", data)
    with pytest.raises(SourceError, match=r"1 record\(s\) do not fit.*\n.*1\.csv: 2,"):
        reader.take()
    if number == 0:
        aside = Reader(spark, tmp_path, malformed="set_aside", **CSV)
        aside.take()
        assert aside.rows() == Counter([(1, "\u00e9", 1), (3, "c", 1)])


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16", "windows-1252"])
def test_declared_encodings(spark: SparkSession, tmp_path: Path, form: str, encoding: str) -> None:
    text = {"csv": "1,\u00e9,1\n", "json": '{"id":1,"v":"\u00e9","pos":1}\n'}[form]
    reader = Reader(spark, tmp_path, envelope="append", format=form, options={"Encoding": encoding})
    csv(reader, f"1.{form}", text.encode(encoding))
    csv(reader, f"2.{form}.gz", gzip.compress(text.encode(encoding)))
    reader.take()
    assert reader.rows() == Counter({(1, "\u00e9", 1): 2})
    assert not list((tmp_path / "state" / "scratch").iterdir())
    if encoding != "ISO-8859-1":
        csv(reader, f"3.{form}", text.encode(encoding) + b"\x81\xdc")
        with pytest.raises(SourceError, match=rf"file .*3\.{form} is not "):
            reader.take()
        assert reader.rows().total() == 2


def test_an_encoding_that_nobody_knows(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, **CSV, options={"encoding": "klingon"})
    csv(reader, "1.csv", b"1,a,1\n")
    with pytest.raises(ConfigError, match=r"options\.encoding is 'klingon'"):
        reader.take()


def test_quotes_that_span_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = b'1,"a\nb",1\n2,"c, ",1\n3,x"y,1\n'
    reader = Reader(spark, tmp_path, **CSV)
    csv(reader, "1.csv", lines)
    with pytest.raises(
        SourceError, match=r"a quote is opened and not closed on this line of .*1\.csv:\n    1,\"a"
    ) as caught:
        reader.take()
    assert "multiLine: true" in caught.value.remedy
    whole = Reader(spark, tmp_path, **CSV, options={"multiline": True})
    whole.take()
    assert {row[:2] for row in whole.rows()} >= {(1, "a\nb"), (3, 'x"y')} and whole.rows().total() == 3


def test_odd_quotes_that_span_nothing(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, **CSV)
    csv(reader, "1.csv", b'1,x"y,1\n2,"x\\"y",1\n3,"a,""b",1\n4,"x,",1\n5,5",1\n')
    reader.take()
    assert {row[0] for row in reader.rows()} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("data", [b'{"id":1,"v":"a","pos":1} {"id":2}', b'[{"id":1}] x', b'[{"id":1},{"id":"\xe9"}]'])
def test_json_of_several_lines_is_one_text(spark: SparkSession, tmp_path: Path, data: bytes) -> None:
    reader = Reader(spark, tmp_path, envelope="append", options={"multiLine": True})
    csv(reader, "1.json", b'[{"id":1,"v":"a","pos":1},\n{"id":2,"v":"b","pos":1}]')
    reader.take()
    assert reader.rows().total() == 2
    csv(reader, "2.json", data)
    with pytest.raises(SourceError, match=r"2\.json is not one JSON text"):
        reader.take()


@pytest.mark.parametrize(
    "options", [{"multiLine": True}, {"MULTILINE": "True"}, {"lineSep": "|"}, {"encoding": "UTF-16"}]
)
def test_a_growing_file_is_read_by_lines(spark: SparkSession, tmp_path: Path, options: dict[str, Any]) -> None:
    reader = Reader(spark, tmp_path, envelope="append", path="in/log.csv", format="csv", options=options)
    csv(reader, "log.csv", b'1,"a\nb",1\n2,"c')
    with pytest.raises(ConfigError, match=r"is one growing file, which is read line by line; with options\."):
        reader.take()


def test_a_growing_file_with_a_header_in_another_encoding(spark: SparkSession, tmp_path: Path) -> None:
    options = {"Header": True, "encoding": "latin1"}
    reader = Reader(spark, tmp_path, envelope="append", path="in/log.csv", format="csv", options=options)
    data = "id,v,pos\n1,\u00e9,1\n".encode("latin-1")
    csv(reader, "log.csv", data)
    reader.take()
    csv(reader, "log.csv", data + "2,\u00e8,1\n3,".encode("latin-1"))
    reader.take()
    assert reader.rows() == Counter([(1, "\u00e9", 1), (2, "\u00e8", 1)])


def test_a_growing_file_does_not_commit_half_a_record(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, envelope="append", path="in/log.csv", format="csv")
    csv(reader, "log.csv", b"1,a,1\n")
    reader.take()
    csv(reader, "log.csv", b'1,a,1\n2,"b\n')
    with pytest.raises(SourceError, match=r"not closed on this line of .*in/log\.csv"):
        reader.take()
    assert reader.rows() == Counter([(1, "a", 1)])


def test_links_count_nothing_twice(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, envelope="append")
    folder, outside = tmp_path / "in", tmp_path / "outside"
    (folder / "sub").mkdir()
    (outside / "deep").mkdir(parents=True)
    csv(reader, "1.json", GOOD % 1)
    csv(reader, "sub/2.json", GOOD % 2)
    (outside / "3.json").write_bytes(GOOD % 3)
    (outside / "deep" / "4.json").write_bytes(GOOD % 4)
    (outside / "5").write_bytes(GOOD % 5)
    for name, target in {
        "self": ".", "up": "..", "a": "1.json", "sub/b": "../1.json", "sub2": "sub", "sub/back": "../sub",
        "out": "../outside", "out2": "../outside", "f.json": "../outside/5", "g.json": "../outside/5", "none": "nowhere",
        "loop": "loop",
    }.items():  # fmt: skip
        (folder / name).symlink_to(target)
    (outside / "home").symlink_to("../in")
    reader.take()
    assert Counter(row[0] for row in reader.rows().elements()) == Counter([1, 2, 3, 4, 5])
    assert reader.take().rows == 0
    (folder / "0").symlink_to("../outside")
    (folder / "00.json").symlink_to("../outside/5")
    (folder / "000.json").symlink_to("1.json")
    csv(reader, "6.json", GOOD % 6)
    reader.take()
    assert Counter(row[0] for row in reader.rows().elements()) == Counter([1, 2, 3, 4, 5, 6])


def test_another_kind_of_path_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, envelope="append", path="in/x.json")
    csv(reader, "x.json", GOOD % 1)
    reader.take()
    path = tmp_path / "in" / "x.json"
    path.unlink()
    path.mkdir()
    (path / "x.json").write_bytes(GOOD % 1)
    with pytest.raises(SourceError, match=r"was a growing file, and is a folder now") as caught:
        reader.take()
    assert "state_root" in caught.value.remedy
    other = Reader(spark, tmp_path / "in", envelope="append", path="../in/x.json")
    other.take()
    (path / "x.json").unlink()
    path.rmdir()
    path.write_bytes(GOOD % 1)
    with pytest.raises(SourceError, match="was a folder, and is a growing file now"):
        other.take()
    assert reader.rows().total() == other.rows().total() == 1


def test_a_name_that_is_not_utf8_is_told(spark: SparkSession, tmp_path: Path) -> None:
    reader = Reader(spark, tmp_path, envelope="append")
    csv(reader, "1.json", GOOD % 1)
    bad = os.fsencode(tmp_path / "in") + b"/\xe9.json"
    Path(os.fsdecode(bad)).write_bytes(GOOD % 2)
    with pytest.raises(SourceError, match=r"the name of file b'\\xe9\.json' at .* is not UTF-8"):
        reader.take()
    os.rename(bad, os.fsencode(tmp_path / "in") + "/\u00e9.json".encode())
    reader.take()
    assert reader.rows().total() == 2


@pytest.mark.parametrize("envelope", ["upsert", "changelog", "debezium"])
def test_names_in_other_case_are_the_columns(spark: SparkSession, tmp_path: Path, envelope: str) -> None:
    meta = {"changelog": {"diff_column": "POS"}, "upsert": {"order_by": "POS", "key": "ID"}, "debezium": {"key": "Id"}}
    good = b'{"op":"c","after":' + GOOD.strip() + b"}\n" if envelope == "debezium" else GOOD
    reader = Reader(spark, tmp_path, envelope=envelope, **meta[envelope])
    for step in range(3):
        csv(reader, f"{step}.json", good % 1 + good % (step + 2))
        reader.take()
    ones = 3 if envelope == "changelog" else 1
    assert Counter(row[0] for row in reader.rows().elements()) == Counter({1: ones, 2: 1, 3: 1, 4: 1})


@pytest.mark.parametrize("value", ["10000-01-01", "+12345-06-07", "-0001-01-01"])
def test_dates_outside_the_calendar(spark: SparkSession, tmp_path: Path, value: str) -> None:
    columns = {"id": "bigint", "at": "date", "inside": "struct<at:timestamp>"}
    first = b'{"id":1,"at":"9999-12-31","inside":{"at":"9999-12-31T23:59:59Z"}}\n'
    reader = Reader(spark, tmp_path, columns, envelope="append")
    csv(reader, "1.json", first + b'{"id":2,"at":"0001-01-01"}\n')
    reader.take()
    bad = [b'{"id":3,"at":"%s"}\n', b'{"id":3,"inside":{"at":"%sT00:00:00Z"}}\n']
    csv(reader, "2.json", b"".join(line % value.encode() for line in bad))
    with pytest.raises(SourceError, match=r"2 record\(s\) do not fit.*\n.*2\.json"):
        reader.take()
    assert reader.rows().total() == 2


@pytest.mark.parametrize("column", ["CAST(%d AS DATE)", "timestamp_micros(%d)"])
def test_parquet_with_dates_outside_the_calendar(spark: SparkSession, tmp_path: Path, column: str) -> None:
    last = 2932896 if "DATE" in column else 253402300799999999
    text = column.replace("CAST(%d AS DATE)", "date_from_unix_date(%d)")
    for number in range(2):
        rows = spark.sql(f"SELECT 1L AS id, {text % (last + number)} AS at").coalesce(1)
        rows.write.parquet(str(tmp_path / "made" / str(number)))
    reader = Reader(spark, tmp_path, {}, envelope="append", format="parquet")
    for number in range(2):
        (made,) = (tmp_path / "made" / str(number)).glob("*.parquet")
        made.rename(tmp_path / "in" / f"{number}.parquet")
        if number == 0:
            reader.take()
    with pytest.raises(DifferentialError, match=r"column at of .*1\.parquet has a date outside the years 1 to 9999"):
        reader.take()
    assert reader.rows().total() == 1


def test_parquet_does_not_bring_code(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's Python side unpickles the class of a user-defined type that a file's schema names."""
    mark = tmp_path / "was run"
    code = base64.b64encode(pickle.dumps(Runs(str(mark)))).decode()
    udt = {"type": "udt", "pyClass": "tests.oracle.NoSuchClass", "serializedClass": code, "sqlType": "long"}
    fields = [{"name": "id", "type": udt, "nullable": True, "metadata": {}}]
    known = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields})}
    table = pa.table({"id": pa.array([1], pa.int64())}).replace_schema_metadata(known)
    reader = Reader(spark, tmp_path, {}, envelope="append", format="parquet")
    pq.write_table(table, tmp_path / "in" / "1.parquet")
    with pytest.raises(SourceError, match=r"1\.parquet has a column of a type that a program has defined"):
        reader.take()
    assert not mark.exists()


class Runs:
    """Writes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return Path.touch, (Path(self._path),)
