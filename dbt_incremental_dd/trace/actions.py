"""Data files as actions of a Delta log: their description in its entries, and back."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, TIME, Schema
from dbt_incremental_dd.core.types import DATE
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES


def live_files(table: DeltaTable, schema: Schema) -> tuple[DataFile, ...]:
    """All live files, oldest updates first. Raises ValueError for a path that no file of a trace has."""
    # `pa.table` would import pandas to check the type of its argument.
    actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
    return in_order(_data_file(row, schema) for row in actions.to_pylist())


def in_order(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """Oldest updates first."""
    return tuple(sorted(files, key=lambda file: (file.first, file.last, file.path)))


def add_action(file: DataFile, schema: Schema, *, changes_data: bool, now: int) -> AddAction:
    """The action that makes the file live. ``now``: ms."""
    lows: dict[str, Any] = {TIME: file.first, DIFF: file.min_diff}
    highs: dict[str, Any] = {TIME: file.last, DIFF: file.max_diff}
    for name, (low, high) in file.bounds.items():
        lows[name], highs[name] = json_bound(low), json_bound(high)
    stats = {"numRecords": file.rows, "minValues": lows, "maxValues": highs, "nullCount": dict.fromkeys(lows, 0)}
    return AddAction(
        path=file.path,
        size=file.bytes,
        partition_values={},
        modification_time=now,
        data_change=changes_data,
        stats=json.dumps(stats),
    )


def json_bound(value: Any) -> Any:
    """A bound as entries have it."""
    return value if isinstance(value, int | str) else value.isoformat()


_OWN_PATH = re.compile(r"(?!\.\.?(/|$))[\w.=~-]+(/(?!\.\.?(/|$))[\w.=~-]+)*", re.ASCII)
"""Paths that a trace's own files may have: below its folder, and without characters that readers take for patterns or
URLs."""


def typed_bounds(bounds: Mapping[str, Sequence[Any]], schema: Schema) -> dict[str, tuple[Any, Any]]:
    """Bounds as entries have them, by the types of their columns."""
    found = {}
    for column in schema:
        if column.name in bounds and column.type in BOUNDED_TYPES:
            low, high = bounds[column.name]
            is_date = column.type == DATE
            found[column.name] = (_date(low), _date(high)) if is_date else (low, high)
    return found


def _date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def data_file_of(add: Mapping[str, Any], schema: Schema) -> DataFile:
    """The file of an entry's action. Raises ValueError or KeyError for one that is not a trace's own."""
    path = own_path(str(add["path"]))
    stats = json.loads(add["stats"])
    lows, highs = stats["minValues"], stats["maxValues"]
    bounds = {name: (low, highs[name]) for name, low in lows.items() if name not in (TIME, DIFF)}
    return DataFile(
        path=path,
        rows=stats["numRecords"],
        bytes=add["size"],
        first=lows[TIME],
        last=highs[TIME],
        min_diff=lows[DIFF],
        max_diff=highs[DIFF],
        bounds=typed_bounds(bounds, schema),
    )


def own_path(path: str) -> str:
    """The path, if it is one of a trace's own files. Raises ValueError otherwise."""
    if not _OWN_PATH.fullmatch(path):
        raise ValueError(f"it names {path!r}, which is no file of its own")
    return path


def _data_file(row: Mapping[str, Any], schema: Schema) -> DataFile:
    names = [c.name for c in schema if c.type in BOUNDED_TYPES and c.name not in (TIME, DIFF)]
    bounds = {n: (row[f"min.{n}"], row[f"max.{n}"]) for n in names if row.get(f"min.{n}") is not None}
    return DataFile(
        path=own_path(row["path"]),
        rows=row["num_records"],
        bytes=row["size_bytes"],
        first=row[f"min.{TIME}"],
        last=row[f"max.{TIME}"],
        min_diff=row[f"min.{DIFF}"],
        max_diff=row[f"max.{DIFF}"],
        bounds=bounds,
    )
