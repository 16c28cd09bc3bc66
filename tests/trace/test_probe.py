"""Probing files for keys: what DuckDB finds is what Arrow reads."""

from __future__ import annotations

import datetime
import random
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core import types
from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    Field,
    Map,
    Struct,
    Type,
)
from dbt_incremental_dd.parquet.probe import probe
from dbt_incremental_dd.trace import driver_reader
from dbt_incremental_dd.trace.arrow import arrow_type
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow

UTC = datetime.UTC
DEEP = {"At": datetime.datetime(2020, 1, 1, tzinfo=UTC), "n": [Decimal("1.50"), None]}
COLUMNS: dict[str, tuple[Type, list[Any]]] = {
    "i": (INTEGER, [1, 2, None]),
    "s": (STRING, ["a", "'x", "ä", None]),
    "d": (DATE, [datetime.date(2020, 1, 1), datetime.date(1200, 1, 1), None]),
    "amount": (types.Decimal(38, 10), [Decimal("1.5"), Decimal("-9999999999999999999999999999.9999999999"), None]),
    "ts": (TIMESTAMP, [datetime.datetime(2020, 1, 1, tzinfo=UTC), datetime.datetime(1, 1, 1, 0, 0, 0, 1, UTC), None]),
    "ntz": (TIMESTAMP_NTZ, [datetime.datetime(2020, 1, 1, 5), None]),
    "f": (DOUBLE, [float("nan"), -0.0, 1e300, None]),
    "bytes": (BINARY, [b"\xff\x00", b"", None]),
    "flag": (BOOLEAN, [True, False, None]),
    "b": (BYTE, [1, -128, None]),
    "l": (LONG, [2**63 - 1, -5, None]),
    'we"ird `name': (STRING, ["q", None]),
    "two words": (LONG, [1]),
    "p": (Struct((Field("seq", LONG),)), [None, {"seq": 1}, {"seq": None}]),
    "tags": (Array(STRING), [None, [], ["a", None], [None]]),
    "deep": (Array(Struct((Field("At", TIMESTAMP), Field("n", Array(types.Decimal(5, 2)))))), [None, [], [DEEP, None]]),
    "m": (Map(STRING, Struct((Field("x", DATE),))), [None, [], [("b", None), ("a", {"x": datetime.date(1200, 1, 1)})]]),
}
LATER = ("amount", "s", "m")
"""Columns that the second file does not have."""


def schema_of(names: list[str]) -> Schema:
    return Schema(tuple(Column(name, COLUMNS[name][0]) for name in names))


def stored(storage: Storage, names: list[str]) -> DataFile:
    rng = random.Random(len(names))
    data = {n: pa.array([rng.choice(COLUMNS[n][1]) for _ in range(60)], arrow_type(COLUMNS[n][0])) for n in names}
    return write_arrow(storage, storage.root, pa.table(data), schema_of(names))


KEYS: list[tuple[dict[str, list[Any]], bool]] = [
    ({"i": [1, 2]}, True),
    ({"i": [1], "b": [1]}, True),
    ({"s": ["'x", "a"]}, True),
    ({"d": [datetime.date(1200, 1, 1)]}, True),
    ({"l": [-5, 2**63 - 1]}, True),
    ({'we"ird `name': ["q"]}, True),
    ({"i": []}, False),
    ({"i": [77]}, False),
]


@pytest.mark.parametrize(("keys", "some"), KEYS)
def test_both_readers_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, list[Any]], some: bool
) -> None:
    storage = Storage(str(tmp_path))
    files = [stored(storage, list(COLUMNS)), stored(storage, [n for n in COLUMNS if n not in LATER])]
    schema = schema_of(list(COLUMNS))
    monkeypatch.setattr(driver_reader, "_LITTLE", -1)
    found = driver_reader.read_files(storage, storage.root, files, schema, keys)
    monkeypatch.setattr(driver_reader, "probe", lambda *_: None)
    wanted = driver_reader.read_files(storage, storage.root, files, schema, keys)
    assert found.schema == wanted.schema
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))
    assert bool(found.num_rows) is some


def test_keys_of_several_columns_are_looked_for_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path))
    file = stored(storage, list(COLUMNS))
    keys = {"i": [1, 2], "l": [-5, 2**63 - 1]}
    pairs = [(1, -5), (2, 2**63 - 1)]
    together = pa.table({"i": [i for i, _ in pairs], "l": [n for _, n in pairs]})
    schema = schema_of(["l", "i", "s"])
    each = driver_reader.read_files(storage, storage.root, [file], schema, keys)
    monkeypatch.setattr(driver_reader, "_LITTLE", -1)
    found = driver_reader.read_files(storage, storage.root, [file], schema, keys, together)
    wanted = [row for row in each.to_pylist() if (row["i"], row["l"]) in pairs]
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted))
    assert 0 < found.num_rows < each.num_rows


def test_a_first_look_into_little_imports_no_duckdb(tmp_path: Path) -> None:
    """A process of few look-ups would spend its time on it; one that has it reads less of larger files."""
    storage = Storage(str(tmp_path))
    file = stored(storage, ["i", "l"])
    program = f"""if True:
        import sys
        from dbt_incremental_dd.core.data_file import DataFile
        from dbt_incremental_dd.core.schema import Schema
        from dbt_incremental_dd.trace.driver_reader import read_files
        from dbt_incremental_dd.trace.layout import Storage
        schema = Schema.from_json({schema_of(["i", "l"]).to_json()!r})
        for rows in (2_000_000, 2_000_001):
            file = DataFile({file.path!r}, rows, {file.bytes}, 0, 0, 1, 1)
            table = read_files(Storage({storage.root!r}), {storage.root!r}, [file], schema, {{"i": [1]}})
            print(table.num_rows > 0, "duckdb" in sys.modules)
    """
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert made.stdout.split() == ["True", "False", "True", "True"], made.stderr


def test_what_it_cannot_read_is_left_to_arrow(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    file = stored(storage, ["i", "l"])
    filesystem, root = storage.filesystem(storage.root)
    paths = [f"{root}/{file.path}"]
    columns = pa.schema([("i", pa.int32()), ("s", pa.string())])
    assert probe(filesystem, paths, columns, {"i": [1]}) is None
    assert probe(filesystem, [f"{root}/[a].parquet"], pa.schema([columns.field(0)]), {"i": [1]}) is None
    assert probe(filesystem, paths, pa.schema([columns.field(0)]), {}) is None
