"""Columns of Iceberg tables: their types, and what becomes of them when others come."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dbt_incremental_dd.core.errors import ConfigError
from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import BYTE, from_json
from dbt_incremental_dd.open_table.iceberg import iceberg
from dbt_incremental_dd.open_table.iceberg.iceberg import IcebergFormat, IcebergVersion
from dbt_incremental_dd.open_table.table import POSITION_COLUMN, TableChange, TableVersion
from dbt_incremental_dd.trace.layout import Storage
from dbt_incremental_dd.trace.write import write_arrow
from tests.open_table.readers import Rows, by_pyiceberg, rows_of

_NESTED = '{"type":"struct","fields":[{"name":"a","type":"short","nullable":true,"metadata":{}},{"name":"b","type":%s,"nullable":true,"metadata":{}}]}'
_LIST = '{"type":"array","elementType":"decimal(20,3)","containsNull":true}'
_MAP = '{"type":"map","keyType":"string","valueType":"double","valueContainsNull":true}'
TYPES: dict[str, tuple[str, pa.DataType, Any]] = {
    "b": ('"byte"', pa.int8(), -3),
    "s": ('"short"', pa.int16(), 300),
    "l": ('"long"', pa.int64(), 1 << 40),
    "f": ('"float"', pa.float32(), 0.5),
    "t": ('"boolean"', pa.bool_(), True),
    "x": ('"binary"', pa.binary(), b"\x00\xff"),
    "d": ('"date"', pa.date32(), date(1969, 12, 31)),
    "n": ('"timestamp_ntz"', pa.timestamp("us"), datetime(2024, 2, 29, 1, 2, 3, 456)),
    "w": ('"decimal(38,10)"', pa.decimal128(38, 10), Decimal("12345678901234567890.0123456789")),
    "r": (
        _NESTED % _LIST,
        pa.struct({"a": pa.int16(), "b": pa.list_(pa.decimal128(20, 3))}),
        {"a": 1, "b": [Decimal("1.000"), None]},
    ),
    "m": (_MAP, pa.map_(pa.string(), pa.float64()), [("k", 1.5), ("z", None)]),
    "c": ('"varchar(5)"', pa.string(), "ü"),
}


def schema_of(*names: str) -> Schema:
    """Columns of these types, which are called as they are."""
    return Schema(tuple(Column(name, from_json(json.loads(TYPES[name][0]))) for name in names))


def rows_with(names: Iterable[str]) -> Rows:
    """What a table with these columns has."""
    return rows_of(pa.table({name: pa.array([TYPES[name][2], None], TYPES[name][1]) for name in names}))


def committed(folder: Path, before: TableVersion | None, schema: Schema, *, t: int) -> TableVersion:
    """A table of one row with these columns, and one without values."""
    storage, uri, own = Storage(str(folder)), str(folder / "table"), IcebergFormat()
    own.require("m.t", schema)
    columns = {name: pa.array([TYPES[name][2], None], TYPES[name][1]) for name in schema.names}
    table = pa.table({**columns, POSITION_COLUMN.name: pa.array([0, 1])})
    numbers = own.numbers(before, uri, schema)
    stored = Schema((*schema, POSITION_COLUMN))
    file = write_arrow(storage, uri, table, stored, stored.names, numbers=numbers)
    return own.commit(storage, uri, "m.t", before, TableChange(t + 1, 1_000, came=(file,), replaces=schema))


def test_types(tmp_path: Path) -> None:
    schema = schema_of(*TYPES)
    version = committed(tmp_path, None, schema, t=1_000)
    assert by_pyiceberg(version.uri, schema.names) == rows_with(schema.names)
    iceberg.WRITTEN.clear()
    loaded = IcebergFormat().load(Storage(str(tmp_path)), version.uri)
    assert isinstance(loaded, IcebergVersion) and isinstance(version, IcebergVersion)
    assert replace(loaded, manifests=()) == replace(version, manifests=())


def test_columns_that_change(tmp_path: Path) -> None:
    """Others stay what they were, also in former snapshots, unless one of them has another type."""
    first = committed(tmp_path, None, schema_of("l", "r", "d"), t=1_000)
    second = committed(tmp_path, first, schema_of("d", "m", "l"), t=1_010)
    third = committed(tmp_path, second, schema_of("r", "l", "d"), t=1_020)
    for version in (first, second, third):
        names = version.schema.names
        assert by_pyiceberg(version.uri, names, version.number) == rows_with(names), names
    other = Schema((*schema_of("l"), Column("d", BYTE)))
    storage, uri = Storage(str(tmp_path)), first.uri
    last = IcebergFormat().commit(storage, uri, "m.t", third, TableChange(1_031, 1_000, replaces=other))
    assert last.number == 1 and by_pyiceberg(uri, ("l", "d")) == {}


@pytest.mark.parametrize(
    ("name", "type", "told"),
    [
        ("x", '"void"', "the column x, of type void"),
        ("x", '"interval day to second"', "of type interval day to second"),
        ("x", _NESTED % '"variant"', "which has variant"),
        ("_pos", '"long"', "the column _pos, which is one of Iceberg's own"),
        ("a.b", '"long"', "two columns, or fields of columns, called a.b"),
    ],
)
def test_columns_that_an_iceberg_table_cannot_have(name: str, type: str, told: str) -> None:
    schema = Schema((Column(name, from_json(json.loads(type))), Column("a", from_json(json.loads(_NESTED % _LIST)))))
    with pytest.raises(ConfigError, match=told):
        IcebergFormat().require("m.t", schema)
