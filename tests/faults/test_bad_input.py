"""Input that nobody should trust: each kind gives an error of its own, stores nothing, and the next good run is exact."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt_incremental_dd.core.errors import DifferentialError, SourceError
from tests.sources.test_intake import Reader, record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]
Bad = Callable[[Path], None]


def lines(*records: Any) -> bytes:
    """JSON lines; a record that is text is written as it is."""
    return b"".join((r if isinstance(r, str) else json.dumps(r)).encode() + b"\n" for r in records)


def file(name: str, content: bytes) -> Bad:
    """A file more."""
    return lambda folder: Path(folder / name).write_bytes(content) and None


def parquet(name: str, **columns: Any) -> Bad:
    """A Parquet file more."""
    return lambda folder: pq.write_table(pa.table(columns), folder / name)


def cut(name: str, kept: float, **columns: Any) -> Bad:
    """A Parquet file of which only a part has arrived."""

    def write(folder: Path) -> None:
        parquet(name, **columns)(folder)
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * kept)])

    return write


def flipped(name: str, **columns: Any) -> Bad:
    """A Parquet file with other bytes in its data."""

    def write(folder: Path) -> None:
        parquet(name, **columns)(folder)
        data = bytearray((folder / name).read_bytes())
        data[8 : len(data) // 3] = b"\xa5" * (len(data) // 3 - 8)
        (folder / name).write_bytes(bytes(data))

    return write


FIRST_FILE = file("1.json", lines(record(1)))
GOOD_FILE = file("9.json", lines(record(9)))


@dataclass
class Case:
    """``bad`` makes the input what it should not be; then all files but the first are removed, and a good one comes."""

    message: str
    bad: Bad
    meta: dict[str, Any] = field(default_factory=dict)
    first: Bad = FIRST_FILE
    good: Bad = GOOD_FILE
    columns: dict[str, Any] | None = None
    rows: Counter[Row] = field(default_factory=lambda: Counter([(1, "a", 1), (9, "a", 1)]))


JSON = {"envelope": "append"}
UPSERT = {"envelope": "upsert", "key": "id"}
DEBEZIUM = {"envelope": "debezium", "key": "id"}
CHANGES = {"envelope": "changelog", "diff_column": "pos"}
NAMED = {"envelope": "changelog", "op_column": "v"}
TYPED = {"id": "bigint", "x": "string"}
WIDE = [0.5 * i for i in range(5000)]


def event(op: Any, **sides: Any) -> dict[str, Any]:
    """A change event."""
    return {"op": op, "ts_ms": 5, "source": {"lsn": 5}, "before": None, "after": None, **sides}


def typed(dtype: str, value: Any, good: Any) -> Case:
    """A value that a column of that type cannot have."""
    first = file("1.json", lines({"id": 1, "x": None}))
    later = file("9.json", lines({"id": 9, "x": good}))
    bad = file("2.json", lines({"id": 2, "x": value}))
    columns = {"id": "bigint", "x": dtype}
    return Case(r"1 record\(s\) do not fit.*\n.*2\.json", bad, JSON, first, later, columns, Counter())


def parquet_case(message: str, bad: Bad, **meta: Any) -> Case:
    """Over Parquet files with ``id`` and ``v``."""
    first, good = parquet("1.parquet", id=[1], v=[1.0]), parquet("9.parquet", id=[9], v=[9.0])
    rows: Counter[Row] = Counter([(1, 1.0), (9, 9.0)])
    return Case(message, bad, {"envelope": "append", "format": "parquet", **meta}, first, good, {}, rows)


def csv_case(message: str, text: str) -> Case:
    """Over CSV files with a header."""
    meta = {"envelope": "append", "format": "csv", "options": {"header": True}}
    first, good = file("1.csv", b"id,v,pos\n1,a,1\n"), file("9.csv", b"id,v,pos\n9,a,1\n")
    return Case(message, file("2.csv", text.encode()), meta, first, good)


def debezium_case(message: str, *events: Any) -> Case:
    """Over change events."""
    first = file("1.json", lines(event("c", after=record(1))))
    good = file("9.json", lines(event("c", after=record(9))))
    return Case(message, file("2.json", lines(*events)), DEBEZIUM, first, good)


ZIPPED = gzip.compress(lines(*(record(i) for i in range(3000))))
NOT_FIT = r"record\(s\) do not fit its columns:\n.*2\.json"

CASES = {
    "gzip that was cut": Case(r"2\.json\.gz.*cannot be read", file("2.json.gz", ZIPPED[: len(ZIPPED) // 2]), JSON),
    "gzip that is none": Case(r"2\.json\.gz.*cannot be read", file("2.json.gz", b"no gzip at all"), JSON),
    "a record that was cut": Case(NOT_FIT, file("2.json", b'{"id": 2, "v'), JSON),
    "an array of records": Case(NOT_FIT, file("2.json", b'[\n{"id": 2},\n{"id": 3}\n]\n'), JSON),
    "a file of another kind": Case(NOT_FIT, file("2.json", b"\x89PNG\r\n\x1a\n\x00\x00"), JSON),
    "XML": Case(NOT_FIT, file("2.json", b"<rows><row id='2'/></rows>\n"), JSON),
    "UTF-16": Case(NOT_FIT, file("2.json", '{"id": 2, "v": "x"}\n'.encode("utf-16")), JSON),
    "a byte that is no UTF-8": Case(NOT_FIT, file("2.json", b'{"id": 2, "v": "\xff\xfe", "pos": 1}\n'), JSON),
    "NUL bytes": Case(NOT_FIT, file("2.json", b"\0\0\0\0\n"), JSON),
    "text for a number": Case(NOT_FIT, file("2.json", lines(record("two"))), JSON),
    "too large a number": Case(NOT_FIT, file("2.json", lines(record(2**63))), JSON),
    "a fraction": Case(NOT_FIT, file("2.json", lines(record(2.5))), JSON),
    "an object for a number": Case(NOT_FIT, file("2.json", lines(record({"n": 2}))), JSON),
    "a list for a number": Case(NOT_FIT, file("2.json", lines(record([2]))), JSON),
    "too large an int": Case(NOT_FIT, file("2.json", lines(record(2, "a", 2**31))), JSON),
    "true for a number": Case(NOT_FIT, file("2.json", lines(record(True))), JSON),
    "no date": typed("date", "2020-02-30", "2020-02-28"),
    "no timestamp": typed("timestamp", "yesterday", "2020-02-28 01:00:00"),
    "no boolean": typed("boolean", "maybe", True),
    "no decimal": typed("decimal(5,2)", "one", 1.5),
    "too large a decimal": typed("decimal(5,2)", 123456, 1.5),
    "no binary": typed("binary", "%%%", "YQ=="),
    "no struct": typed("struct<a:int>", "a", {"a": 1}),
    "no double": typed("double", "much", 1e300),
    "a changed file": Case(r"1\.json has changed since", file("1.json", lines(record(1), record(2))), JSON),
    "Parquet that was cut": parquet_case(r"2\.parquet is not a Parquet file", cut("2.parquet", 0.7, id=[2], v=[2.0])),
    "an empty Parquet file": parquet_case(r"2\.parquet is not a Parquet file", file("2.parquet", b"")),
    "text as Parquet": parquet_case(r"2\.parquet is not a Parquet file", file("2.parquet", b"id,v\n1,2\n")),
    "Parquet with other bytes": parquet_case(
        "cannot be (read|taken in)", flipped("2.parquet", id=list(range(5000)), v=WIDE)
    ),
    "Parquet of other types": parquet_case(
        r"column v of .*2\.parquet is string", parquet("2.parquet", id=[2], v=["2"])
    ),
    "Parquet with a narrower type": parquet_case(
        r"column id of .*2\.parquet is integer", parquet("2.parquet", id=pa.array([2], pa.int32()), v=[2.0])
    ),
    "Parquet without the key": parquet_case(r"2\.parquet lacks key column id", parquet("2.parquet", v=[2.0]), **UPSERT),
    "Parquet with a NULL key": parquet_case(
        "key column id is NULL in 1", parquet("2.parquet", id=pa.array([None], pa.int64()), v=[2.0]), **UPSERT
    ),
    "CSV with a column less": csv_case(r"record\(s\) do not fit", "id,v,pos\n2,a\n"),
    "CSV with a column more": csv_case(r"record\(s\) do not fit", "id,v,pos\n2,a,1,x\n"),
    "CSV with text for a number": csv_case(r"record\(s\) do not fit", "id,v,pos\ntwo,a,1\n"),
    "CSV in another order": csv_case("header", "pos,v,id\n1,a,2\n"),
    "CSV with other names": csv_case("header", "id,value,pos\n2,a,1\n"),
    "CSV without a header": csv_case("header", "2,a,1\n3,a,1\n"),
    "a NULL key": Case("key column id is NULL in 1", file("2.json", lines(record(None))), UPSERT),
    "a record without its key": Case("key column id is NULL in 1", file("2.json", lines({"v": "a", "pos": 1})), UPSERT),
    "an op that nobody knows": debezium_case("op 'x' cannot be applied", event("x", after=record(2))),
    "an event without an op": debezium_case("op None cannot be applied", {"id": 2, "v": "a"}),
    "an update to nothing": debezium_case("op 'u' cannot be applied", event("u", before=record(2))),
    "a delete of nothing": debezium_case("op 'd' cannot be applied", event("d")),
    "an event with a NULL key": debezium_case("key column id is NULL", event("c", after=record(None))),
    "an event that was cut": debezium_case(NOT_FIT, '{"op": "c", "after": {"id": 2'),
    "an event with text for a number": debezium_case(NOT_FIT, event("c", after=record("two"))),
    "a diff that is NULL": Case(
        "column pos holds None, which is no change",
        file("2.json", lines(record(2, "a", None))),
        CHANGES,
        rows=Counter([(1, "a"), (9, "a")]),
    ),
    "an operation that nobody knows": Case(
        "column v holds 'upsert', which is no change",
        file("2.json", lines(record(2, "upsert"))),
        NAMED,
        file("1.json", lines(record(1, "insert"))),
        file("9.json", lines(record(9, "+I"))),
        rows=Counter([(1, 1), (9, 1)]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_told_and_stores_nothing(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    reader = Reader(spark, tmp_path, case.columns, **case.meta)
    folder = tmp_path / "in"
    case.first(folder)
    (first,) = folder.iterdir()
    content, times = first.read_bytes(), first.stat()
    reader.take()
    before, version = reader.rows(), _version(reader)
    case.bad(folder)
    with pytest.raises(SourceError, match=rf"(?s)source s\.t: .*{case.message}") as caught:
        reader.take()
    assert caught.value.remedy and "Traceback" not in str(caught.value) and "\tat " not in str(caught.value)
    assert (reader.rows(), _version(reader)) == (before, version)
    for path in folder.iterdir():
        path.unlink()
    first.write_bytes(content)
    _set_times(first, times)
    case.good(folder)
    reader.take()
    if case.rows:
        assert reader.rows() == case.rows
    assert len(reader.rows()) == 2


def _version(reader: Reader) -> int:
    log = reader.storage.collection("s.t").log()
    assert log is not None
    return log.version


def _set_times(path: Path, info: Any) -> None:
    import os

    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


FIRST = {
    "Parquet that was cut": (cut("1.parquet", 0.7, id=[2]), {"format": "parquet", **JSON}, "cannot be"),
    "an empty Parquet file": (file("1.parquet", b""), {"format": "parquet", **JSON}, "cannot be"),
    "gzip that was cut": (file("1.json.gz", ZIPPED[: len(ZIPPED) // 2]), JSON, "cannot be"),
    "no files, no columns": (lambda folder: None, {"format": "parquet", **JSON}, "there are no files at"),
    "a condition that is no SQL": (
        file("1.json", lines(record(1))),
        {**UPSERT, "deleted_when": "v = = 1"},
        "deleted_when",
    ),
    "a condition of no column": (file("1.json", lines(record(1))), {**UPSERT, "deleted_when": "nope"}, "nope"),
    "a key that is no column": (file("1.json", lines(record(1))), {**UPSERT, "key": "nope"}, "no column nope"),
    "nothing there": (lambda folder: None, {"path": "elsewhere", **JSON}, "nothing at .*elsewhere"),
    "no Delta table": (file("1.json", b"{}"), {"format": "delta", **JSON}, "no Delta table"),
    "records of no database": (file("1.json", b'{"a": 1}\n'), {**DEBEZIUM}, "neither `after` nor `before`"),
    "a relation that is not there": (lambda folder: None, {"path": None, "format": None}, "cannot be read"),
}


@pytest.mark.parametrize("name", FIRST)
def test_a_bad_first_input_is_told_and_stores_nothing(spark: SparkSession, tmp_path: Path, name: str) -> None:
    bad, meta, message = FIRST[name]
    declared = None if name in ("gzip that was cut", "nothing there") or "deleted_when" in meta else {}
    reader = Reader(spark, tmp_path, declared, **meta)
    bad(tmp_path / "in")
    with pytest.raises(DifferentialError, match=rf"(?s)source s\.t: .*{message}") as caught:
        reader.take()
    assert caught.value.remedy
    log = reader.storage.collection("s.t").log()
    assert log is None or log.manifest is None


def test_there_are_enough_of_them() -> None:
    assert len(CASES) + len(FIRST) >= 60


ODD: dict[str, list[dict[str, Any]]] = {
    "a key of a megabyte": [{"id": 1, "v": "k" * 1_000_000, "pos": 1}],
    "names with quotes": [{"id": 2, "v": "'; DROP TABLE x; --", "pos": 1}, {"id": 3, "v": '"`\\', "pos": 1}],
    "other alphabets": [{"id": 4, "v": "Ω 漢字 🙂 e\u0301 \u202e", "pos": 1}],
    "the same twice": [{"id": 5, "v": "a", "pos": 7}, {"id": 5, "v": "a", "pos": 7}],
    "out of order": [{"id": 6, "v": "new", "pos": 9}, {"id": 6, "v": "old", "pos": 3}],
}


@pytest.mark.parametrize("name", ODD)
def test_odd_records_are_taken_as_they_are(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """They are keys of an upsert, looked for among what is stored."""
    reader = Reader(spark, tmp_path, envelope="upsert", key="v" if "key" in name else "id", order_by="pos")
    for step in range(2):
        reader.write(f"{step}' `;{{}}.json", ODD[name])
        reader.take()
        latest = {r["id"]: (r["id"], r["v"], r["pos"]) for r in sorted(ODD[name], key=lambda r: r["pos"])}
        assert reader.rows() == Counter(latest.values())
