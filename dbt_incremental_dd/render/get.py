"""Get: the updates of a stored collection."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import BEGINNING, Time
from dbt_incremental_dd.logical.nodes import Get, Node
from dbt_incremental_dd.render.inner import pruned
from dbt_incremental_dd.render.keys import Keys
from dbt_incremental_dd.render.rows import Rows
from dbt_incremental_dd.trace import limits
from dbt_incremental_dd.trace.arrow import is_readable
from dbt_incremental_dd.trace.files import between, inserts_only, matching
from dbt_incremental_dd.trace.local import Local, read_local
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.read import in_interval, quoted, updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dbt_incremental_dd.render.context import Context
    from dbt_incremental_dd.render.operator import OperatorRun


def delta(node: Node, r: OperatorRun) -> Rows | None:
    """The collection's updates in the interval. A few are read on the driver, without a Spark job."""
    assert isinstance(node, Get)
    if r.context.from_nothing:
        return contents(node, r, True, None)
    read = r.context.inputs[node.collection]
    files = between(read.log.files, read.t0, read.t1)
    if not files:
        return None
    wanted = _stored(node, read.schema)
    if total_rows(files) <= limits.LOCAL_ROWS and is_readable(wanted):
        return _read_locally(node, r, files, wanted)
    frame = in_interval(updates(r.context.spark, read.log.uri, files, wanted), files, read.t0, read.t1)
    return Rows(_renamed(frame, node), total_rows(files), positive=inserts_only(files))


def contents(node: Node, r: OperatorRun, new: bool, keys: Keys | None) -> Rows | None:
    """The sum of all updates up to either end, from the files that may hold the keys."""
    assert isinstance(node, Get)
    read = r.context.inputs[node.collection]
    log, schema, t = read.log, read.schema, read.t1 if new else read.t0
    names = dict(node.outputs)
    keys = keys.fitted(_ids(node, schema)) if keys else None
    found = between(log.files, BEGINNING, t)
    files = matching(found, {names[id]: values for id, values in keys.values.items()}) if keys else found
    if not files:
        return None
    few = _found(node, r, files, t, keys) if keys else None
    if few is not None:
        return few
    frame = updates(r.context.spark, log.uri, files, _stored(node, schema))
    frame = in_interval(frame, files, BEGINNING, t)
    frame = pruned(frame, keys, names) if keys else frame
    frame = _renamed(frame, node)
    rows = Rows(frame, total_rows(files), positive=inserts_only(files))
    if keys is None or keys.advisory:
        return rows
    return Rows(keys.semi_join(frame), rows.estimate, positive=rows.positive)


def _found(node: Get, r: OperatorRun, files: tuple[DataFile, ...], t: Time, keys: Keys) -> Rows | None:
    """The keys' rows, if they are found on the driver. Keys that hold NULL have no bounds: then all rows of a small
    collection are read."""
    if keys.values:
        return _probed(node, r, files, t, keys)
    read = r.context.inputs[node.collection]
    wanted = _stored(node, read.schema)
    if r.context.from_nothing or total_rows(files) > limits.TASK_ROWS or not is_readable(wanted):
        return None
    table = read_local(r.context.storage, read.log.uri, files, wanted)
    rows = _of_table(node, r, table.filter(pc.less_equal(table[TIME], t)), wanted, inserts_only(files))
    return rows if keys.advisory else keys.restricted(rows)


def _probed(node: Get, r: OperatorRun, files: tuple[DataFile, ...], t: Time, keys: Keys) -> Rows | None:
    """The few rows of the keys, found on the driver; None where that would be too much for it."""
    read = r.context.inputs[node.collection]
    wanted = _stored(node, read.schema)
    if not is_readable(wanted):
        return None
    names = dict(node.outputs)
    table = r.probes.rows(read.log, wanted, {names[id]: found for id, found in keys.values.items()}, t)
    if table is None:
        return None
    rows = _of_table(node, r, table, wanted, inserts_only(files))
    return rows if keys.advisory else keys.restricted(rows)


def needed(nodes: Iterable[Node], context: Context) -> dict[str, Schema]:
    """For each collection all that the nodes read of it, as far as Arrow reads it."""
    found: dict[str, Schema] = {}
    for node in nodes:
        if isinstance(node, Get) and is_readable(stored := _stored(node, context.inputs[node.collection].schema)):
            others = (column for column in found.get(node.collection, ()) if stored.find(column.name) is None)
            found[node.collection] = Schema((*others, *stored.columns))
    return found


def _stored(node: Get, schema: Schema) -> Schema:
    """What is read of the files: only the columns that the plan needs."""
    by_name = {column.name: column for column in schema}
    wanted = dict.fromkeys(name for _, name in node.outputs)
    return Schema((*(by_name[name] for name in wanted), TIME_COLUMN, DIFF_COLUMN))


def _ids(node: Get, schema: Schema) -> Schema:
    """The collection's columns under the plan's ids."""
    types = {column.name: column.type for column in schema}
    return Schema(tuple(Column(id, types[name]) for id, name in node.outputs))


def _renamed(frame: DataFrame, node: Get) -> DataFrame:
    return frame.select(*(quoted(name).alias(id) for id, name in node.outputs), F.col(DIFF))


def _read_locally(node: Get, r: OperatorRun, files: tuple[DataFile, ...], wanted: Schema) -> Rows:
    read = r.context.inputs[node.collection]
    table = read_local(r.context.storage, read.log.uri, files, wanted)
    inside = pc.and_(pc.greater(table[TIME], read.t0), pc.less_equal(table[TIME], read.t1))
    return _of_table(node, r, table.filter(inside), wanted, inserts_only(files))


def _of_table(node: Get, r: OperatorRun, table: pa.Table, wanted: Schema, positive: bool) -> Rows:
    """A table of the collection's columns under the plan's ids."""
    table = pa.table({**{id: table[name] for id, name in node.outputs}, DIFF: table[DIFF]})
    ids = Schema((*_ids(node, wanted), DIFF_COLUMN))
    return Rows(Local(r.context.spark, table, ids), table.num_rows, positive=positive)
