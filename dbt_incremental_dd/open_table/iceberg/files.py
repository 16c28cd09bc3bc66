"""Data files as manifests describe them, and back."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dbt_incremental_dd.core import types as spark
from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import Schema
from dbt_incremental_dd.open_table.iceberg.columns import POSITION_ID, Fields
from dbt_incremental_dd.open_table.iceberg.deletes import data_file_of
from dbt_incremental_dd.open_table.iceberg.manifests import DATA, Entry, Manifest
from dbt_incremental_dd.open_table.table import POSITION, POSITION_COLUMN, TableFile
from dbt_incremental_dd.trace.actions import own_path

_EPOCH = datetime.date(1970, 1, 1)


def described(uri: str, file: DataFile, schema: Schema, fields: Fields) -> dict[str, Any]:
    """A data file of the table in the folder ``uri``. Columns without NULLs have bounds, and the position has."""
    kinds = dict(zip(schema.names, schema, strict=True)) | {POSITION: POSITION_COLUMN}
    ids = {field["name"]: int(field["id"]) for field in fields} | {POSITION: POSITION_ID}
    bounds = {
        ids[name]: tuple(_packed(value, kinds[name].type) for value in pair) for name, pair in file.bounds.items()
    }
    return {
        "content": DATA,
        "file_path": f"{uri}/{file.path}",
        "file_format": "PARQUET",
        "partition": {},
        "record_count": file.rows,
        "file_size_in_bytes": file.bytes,
        "value_counts": _by_column(dict.fromkeys(bounds, file.rows)),
        "null_value_counts": _by_column(dict.fromkeys(bounds, 0)),
        "lower_bounds": _by_column({number: low for number, (low, _) in bounds.items()}),
        "upper_bounds": _by_column({number: high for number, (_, high) in bounds.items()}),
    }


def _by_column(values: Mapping[int, Any]) -> list[dict[str, Any]]:
    return [{"key": number, "value": value} for number, value in values.items()]


def _packed(value: Any, kind: spark.Type) -> bytes:
    """A bound (Iceberg's specification, "Binary single-value serialization")."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, datetime.date):
        value = (value - _EPOCH).days
    return struct.pack("<q" if kind == spark.LONG else "<i", value)


def _unpacked(value: bytes, kind: spark.Type) -> Any:
    if kind == spark.STRING:
        return value.decode()
    (number,) = struct.unpack("<q" if kind == spark.LONG else "<i", value)
    return _EPOCH + datetime.timedelta(number) if kind == spark.DATE else number


def own_path_of(uri: str, path: str) -> str:
    """A path below the table's folder. Raises ValueError for one that is elsewhere."""
    if not path.startswith(f"{uri}/"):
        raise ValueError(f"it names {path}, which is not one of its own files")
    return own_path(path.removeprefix(f"{uri}/"))


def table_files(uri: str, manifests: Iterable[Manifest], schema: Schema, fields: Fields) -> tuple[TableFile, ...]:
    """The data files of manifests, with how many rows of each are deleted. Raises ValueError."""
    data, deletes = {}, {}
    for manifest in manifests:
        for path, entry in manifest.entries.items():
            if manifest.content == DATA:
                data[path] = _data_file(uri, entry, schema, fields)
            else:
                deletes[data_file_of(entry["data_file"])] = own_path_of(uri, path), entry["data_file"]["record_count"]
    return tuple(_table_files(data, deletes))


def _table_files(data: Mapping[str, DataFile], deletes: Mapping[str, tuple[str, int]]) -> Iterator[TableFile]:
    for path, file in data.items():
        if path in deletes:
            vector, count = deletes[path]
            yield TableFile(file, count, {"path": vector})
        else:
            yield TableFile(file)


def _data_file(uri: str, entry: Entry, schema: Schema, fields: Fields) -> DataFile:
    file = entry["data_file"]
    columns = {int(field["id"]): column for field, column in zip(fields, schema, strict=True)}
    columns[POSITION_ID] = POSITION_COLUMN
    lows, highs = ({one["key"]: one["value"] for one in file[f"{end}_bounds"] or ()} for end in ("lower", "upper"))
    bounds = {
        columns[number].name: (_unpacked(low, columns[number].type), _unpacked(highs[number], columns[number].type))
        for number, low in lows.items()
        if number in columns
    }
    path, rows, size = own_path_of(uri, file["file_path"]), file["record_count"], file["file_size_in_bytes"]
    return DataFile(path, rows, size, first=0, last=0, min_diff=0, max_diff=0, bounds=bounds)
