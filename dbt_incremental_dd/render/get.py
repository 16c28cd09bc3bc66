"""Get: the updates of a stored collection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from dbt_incremental_dd.core.data_file import DataFile
from dbt_incremental_dd.core.schema import DIFF_COLUMN, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.logical.node import Node
from dbt_incremental_dd.logical.nodes import Get
from dbt_incremental_dd.relation.keys import Keys
from dbt_incremental_dd.relation.relation import Relation
from dbt_incremental_dd.relation.stored import in_interval, read
from dbt_incremental_dd.trace.arrow import is_plain, is_readable
from dbt_incremental_dd.trace.files import inserts_only, matching

if TYPE_CHECKING:
    from dbt_incremental_dd.render.context import Context
    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: Get, run: OperatorRun) -> Relation | None:
    """The collection's updates in the interval. A few are read on the driver, without a Spark job."""
    if run.context.from_nothing:
        return contents(node, run, new=True, keys=None)
    source = run.context.inputs[node.collection]
    files = source.new_files
    if not files:
        return None
    most = max(run.context.thresholds.local_rows, run.context.workspace.most(0))
    return _changed(_read(node, run, files, source.t0, source.t1, most=most))


def _changed(rows: Relation) -> Relation | None:
    """Without updates that cancel each other: a record may have changed in columns only that the plan does not read."""
    if rows.table is None or rows.positive or not is_plain(rows.schema):
        return rows
    rows = rows.consolidate()
    return None if rows.is_empty else rows


def contents(node: Get, run: OperatorRun, *, new: bool, keys: Keys | None) -> Relation | None:
    """The sum of all updates up to either end, from the files that may hold the keys."""
    source, names = run.context.inputs[node.collection], dict(node.outputs)
    t = source.t1 if new else source.t0
    keys = keys.fitted(_ids(node, source.schema)) if keys else None
    values = {names[id]: found for id, found in keys.values.items()} if keys else {}
    files = matching(source.log.summands(t), values)
    if not files:
        return None
    rows = _probed(node, run, t, keys) if values and keys else None
    if rows is None:
        # Without keys, or with ones that have no bounds, all rows are read: of a small collection on the driver.
        most = run.context.workspace.most(0 if values else run.context.thresholds.task_rows)
        rows = _read(node, run, files, BEGINNING, t, most=most, keys=keys)
    return rows if keys is None or keys.advisory else keys.restricted(rows)


def _read(
    node: Get,
    run: OperatorRun,
    files: tuple[DataFile, ...],
    after: Time,
    up_to: Time,
    *,
    most: int,
    keys: Keys | None = None,
) -> Relation:
    """The files' updates in an interval, under the plan's ids."""
    source, names = run.context.inputs[node.collection], dict(node.outputs)
    values = {names[id]: found for id, found in keys.values.items()} if keys else None
    rows = read(
        run.context.workspace, source.log.uri, files, stored_columns(node, source.schema), most=most, values=values
    )
    rows = in_interval(rows, files, after, up_to).select(node.outputs)
    return replace(rows, positive=inserts_only(files))


def _probed(node: Get, run: OperatorRun, t: Time, keys: Keys) -> Relation | None:
    """The few rows of the keys, found on the driver; None where that would be too much for it."""
    source, names = run.context.inputs[node.collection], dict(node.outputs)
    wanted = stored_columns(node, source.schema)
    if not is_readable(wanted):
        return None
    found = run.probes.rows(source.log, wanted, {names[id]: values for id, values in keys.values.items()}, t)
    if found is None:
        return None
    positive = inserts_only(run.probes.files(source.log))
    return Relation.of(run.context.workspace, found, wanted, positive=positive).select(node.outputs)


def needed(nodes: Iterable[Node], context: Context) -> dict[str, Schema]:
    """For each collection all that the nodes read of it, as far as Arrow reads it."""
    found: dict[str, Schema] = {}
    for node in nodes:
        if isinstance(node, Get) and is_readable(
            stored := stored_columns(node, context.inputs[node.collection].schema)
        ):
            others = (column for column in found.get(node.collection, ()) if stored.find(column.name) is None)
            found[node.collection] = Schema((*others, *stored.columns))
    return found


def stored_columns(node: Get, schema: Schema) -> Schema:
    """What is read of the files: only the columns that the plan needs."""
    by_name = {column.name: column for column in schema}
    wanted = dict.fromkeys(name for _, name in node.outputs)
    return Schema((*(by_name[name] for name in wanted), TIME_COLUMN, DIFF_COLUMN))


def _ids(node: Get, schema: Schema) -> Schema:
    """The collection's columns under the plan's ids."""
    types = {column.name: column.type for column in schema}
    return Schema(tuple(Column(id, types[name]) for id, name in node.outputs))
