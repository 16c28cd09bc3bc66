"""Readers of open tables that know nothing of this project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

Rows = Counter[tuple[Any, ...]]


def by_delta_rs(
    uri: str, columns: Sequence[str], version: int | None = None, options: Mapping[str, str] | None = None
) -> Rows:
    """The rows of a version by delta-rs and DataFusion."""
    table = DeltaTable(uri, version=version, storage_options=dict(options or {}))
    listed = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    return rows_of(pa.table(QueryBuilder().register("t", table).execute(f"SELECT {listed} FROM t").read_all()))


def by_pyiceberg(
    uri: str, columns: Sequence[str], version: int | None = None, options: Mapping[str, str] | None = None
) -> Rows:
    """The rows of a version by PyIceberg."""
    from tests.open_table.pyiceberg_table import table_at  # half a second, of which many processes would have no use

    table = table_at(uri, options or {})
    snapshots = {snapshot.sequence_number: snapshot.snapshot_id for snapshot in table.snapshots()}
    scan = table.scan(snapshot_id=None if version is None else snapshots[version])
    return rows_of(scan.to_arrow().select(list(columns)))


READERS = {"delta": by_delta_rs, "iceberg": by_pyiceberg}
"""By the table's format."""


def feed_by_delta_rs(uri: str, columns: Sequence[str], first: int) -> dict[int, Rows]:
    """What each version from ``first`` on has changed, by the table's own change feed."""
    found: dict[int, Rows] = {}
    feed = pa.table(DeltaTable(uri).load_cdf(starting_version=first).read_all())
    signs = {"insert": 1, "delete": -1, "update_postimage": 1, "update_preimage": -1}
    for row in feed.to_pylist():
        counts = found.setdefault(row["_commit_version"], Counter())
        counts[tuple(plain(row[name]) for name in columns)] += signs[row["_change_type"]]
    return found


def rows_of(table: pa.Table) -> Rows:
    """A table's rows as a multiset."""
    return Counter(tuple(plain(value) for value in row.values()) for row in table.to_pylist())


def plain(value: Any) -> Any:
    """A value that is equal wherever Spark's GROUP BY takes two to be: times without a zone, floats as text."""
    if hasattr(value, "tzinfo") and value.tzinfo is not None:
        return value.replace(tzinfo=None) - value.utcoffset()
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, dict):
        return tuple(plain(item) for item in value.values())
    if isinstance(value, list):
        items = [plain(item) for item in value]
        return tuple(sorted(items, key=repr)) if any(isinstance(item, tuple) for item in value) else tuple(items)
    return tuple(map(plain, value)) if isinstance(value, tuple) else value
