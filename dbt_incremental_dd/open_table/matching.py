"""Finds the rows of an open table that go, by their values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF, Schema
from dbt_incremental_dd.core.types import NESTED
from dbt_incremental_dd.local.table import group_numbers
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.logical.nodes import Order
from dbt_incremental_dd.open_table.rows import live, read_files, with_diff
from dbt_incremental_dd.open_table.stand_ins import plainly
from dbt_incremental_dd.open_table.table import POSITION, POSITION_COLUMN, Table, TableVersion
from dbt_incremental_dd.relation.engine import Running
from dbt_incremental_dd.relation.keys import keys_of
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import found_by_keys, with_keys
from dbt_incremental_dd.relation.workspace import Workspace
from dbt_incremental_dd.trace.arrow import BOUNDED_TYPES, arrow_type
from dbt_incremental_dd.trace.files import matching

_WENT, _BEFORE = "dd_went", "dd_before"
_TELLING = 4
"""Columns by which rows that go are told apart, at most."""
_POSITIONS = 100_000_000
"""That are brought to the driver, 8 bytes each."""


def positions_of(
    workspace: Workspace, table: Table, version: TableVersion, went: Relation
) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Where the rows are that went: of equal ones those that have been there longest. None where one is not there."""
    if went.is_empty:
        return np.empty(0, np.int64)
    some, count = _telling(table.schema, version.sorted_by, went), -went.count()
    if some:
        found = _matched(workspace, table, version, went, table.schema.select(some))
        if found is not None and found.candidates == len(found.positions) == count:
            return found.positions  # as the table has all rows that went, no other row has these values
    found = _matched(workspace, table, version, went, table.schema)
    return found.positions if found is not None and len(found.positions) == count else None


def _telling(schema: Schema, sorted_by: tuple[str, ...], went: Relation) -> tuple[str, ...]:
    """A few columns in which all rows that went differ: fewer to read, and to compare. None where there are no such
    ones, or as many as all."""
    if went.table is None:
        return ()
    arrow = went.table.arrow
    plain = [name for name in schema.names if went.groups_locally((name,))]
    counts = {name: int(pc.count_distinct(arrow[name], mode="all").as_py()) for name in plain}
    chosen: list[str] = []
    for name in sorted(plain, key=lambda name: (name not in sorted_by, -counts[name])):
        chosen.append(name)
        if len(chosen) > _TELLING or len(chosen) >= len(schema):
            break
        if pc.count_distinct(group_numbers(arrow, chosen)).as_py() == arrow.num_rows:
            return tuple(chosen)
    return ()


@dataclass(frozen=True)
class _Matched:
    """``positions``: of rows that went; ``candidates``: how many rows are equal to one of them in the columns that were
    compared."""

    positions: np.ndarray[tuple[int], np.dtype[np.int64]]
    candidates: int


def _matched(
    workspace: Workspace, table: Table, version: TableVersion, went: Relation, columns: Schema
) -> _Matched | None:
    """The rows that are equal to those that went in these columns, of each as many as went, if there are so many. None
    where Spark would have to compare what it does not."""
    names, has_maps = columns.names, '"map"' in columns.to_json()
    went = went if columns == table.schema else went.columns(names)
    if has_maps and not went.is_local:
        return None
    found = _found(workspace, table, version, went, columns).localized()
    if has_maps and not found.is_local:
        return None
    found = live(table.format, version, version.files, found, drop=False)
    if went.is_local and found.is_local:
        went, found = plainly(went, names), plainly(found, names)
    counted = went.consolidate().extend([(_WENT, Expr(f"-{DIFF}"))])
    equal = found.lookup(counted, names, [(_WENT, _WENT)]).filter(Expr(f"{_WENT} IS NOT NULL"))
    order = [Order(Expr(POSITION), descending=False, nulls_first=True)]
    numbered = equal.running(names, order, [Running(_BEFORE, Expr(DIFF))])
    positions = numbered.filter(Expr(f"{_BEFORE} < {_WENT}")).columns((POSITION,)).localized(_POSITIONS).table
    if positions is None:
        return None
    candidates = numbered.num_rows() if numbered.is_local else -1
    return _Matched(np.asarray(positions.arrow[POSITION].to_numpy()), candidates)


def _found(workspace: Workspace, table: Table, version: TableVersion, went: Relation, schema: Schema) -> Relation:
    """The table's rows that may be equal to those that went, deleted ones among them, with their positions."""
    files = tuple(file.data for file in version.files)
    stored = _Files(table.uri, Schema((*schema, POSITION_COLUMN)), files)
    if not went.is_local:
        names = tuple(column.name for column in schema if not isinstance(column.type, NESTED))
        return with_diff(with_keys(workspace, stored, stored.schema, keys_of(went, names)))
    sought = _sought(schema, version.sorted_by, went)
    if sought is None:
        return read_files(workspace, table.uri, files, schema)
    keys = keys_of(went, (sought,))
    rows = None
    if all(arrow_type(column.type) is not None for column in schema):
        rows = found_by_keys(workspace, stored, matching(files, keys.values), stored.schema, keys.values)
    if rows is None:
        return with_diff(with_keys(workspace, stored, stored.schema, keys))
    return with_diff(Relation.of(workspace, rows, stored.schema))


def _sought(schema: Schema, sorted_by: tuple[str, ...], went: Relation) -> str | None:
    """The column by whose values to look for rows: the one that files are sorted by or, where a row has none, the one
    with the most values; None where there is no such column."""
    assert went.table is not None
    arrow = went.table.arrow
    names = [c.name for c in schema if c.type in BOUNDED_TYPES and not arrow[c.name].null_count]
    if sorted_by and sorted_by[0] in names:
        return sorted_by[0]
    return max(names, key=lambda name: int(pc.count_distinct(arrow[name]).as_py()), default=None)


@dataclass(frozen=True)
class _Files:
    """The table's, to look for keys in them."""

    uri: str
    schema: Schema
    files: tuple[DataFile, ...]
