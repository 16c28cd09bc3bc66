"""Get: the updates of a stored collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from dbt_incremental_dd.core.batch import DataFile
from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, TIME_COLUMN, Column, Schema
from dbt_incremental_dd.core.time import BEGINNING
from dbt_incremental_dd.logical.nodes import Get, Node
from dbt_incremental_dd.render.inner import pruned
from dbt_incremental_dd.render.rows import LOCAL_ROWS, Keys, Rows, local_frame
from dbt_incremental_dd.trace.files import between, inserts_only, matching
from dbt_incremental_dd.trace.log import total_rows
from dbt_incremental_dd.trace.read import in_interval, quoted, struct, updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dbt_incremental_dd.render.renderer import Renderer

_PLAIN = ("byte", "short", "integer", "long", "string", "boolean", "float", "double", "date", "binary")


def delta(node: Node, r: Renderer) -> Rows | None:
    """The collection's updates in the interval. A few are read on the driver, without a Spark job."""
    assert isinstance(node, Get)
    if r.context.from_nothing:
        return contents(node, r, True, None)
    log, schema = r.context.inputs[node.collection]
    files = between(log.files, r.context.t0, r.context.t1)
    if not files:
        return None
    wanted = _stored(node, schema)
    if total_rows(files) <= LOCAL_ROWS and all(_is_plain(column.type) for column in wanted):
        return _read_locally(node, r, files, wanted)
    frame = in_interval(updates(r.context.spark, log.uri, files, wanted), files, r.context.t0, r.context.t1)
    return Rows(_renamed(frame, node), total_rows(files), positive=inserts_only(files))


def contents(node: Node, r: Renderer, new: bool, keys: Keys | None) -> Rows | None:
    """The sum of all updates up to either end, from the files that may hold the keys."""
    assert isinstance(node, Get)
    log, schema = r.context.inputs[node.collection]
    t = r.context.t1 if new else r.context.t0
    names = dict(node.outputs)
    found = between(log.files, BEGINNING, t)
    files = matching(found, {names[id]: values for id, values in keys.values.items()}) if keys else found
    if not files:
        return None
    frame = updates(r.context.spark, log.uri, files, _stored(node, schema))
    frame = in_interval(frame, files, BEGINNING, t)
    frame = pruned(frame, keys, names) if keys else frame
    frame = _renamed(frame, node)
    rows = Rows(frame, total_rows(files), positive=inserts_only(files))
    if keys is None or keys.advisory:
        return rows
    return Rows(keys.semi_join(frame), rows.estimate, positive=rows.positive)


def _stored(node: Get, schema: Schema) -> Schema:
    """What is read of the files: only the columns that the plan needs."""
    by_name = {column.name: column for column in schema}
    wanted = dict.fromkeys(name for _, name in node.outputs)
    return Schema((*(by_name[name] for name in wanted), TIME_COLUMN, DIFF_COLUMN))


def _renamed(frame: DataFrame, node: Get) -> DataFrame:
    return frame.select(*(quoted(name).alias(id) for id, name in node.outputs), F.col(DIFF))


def _is_plain(dtype: str) -> bool:
    return dtype in _PLAIN or dtype.startswith("decimal")


def _read_locally(node: Get, r: Renderer, files: tuple[DataFile, ...], wanted: Schema) -> Rows:
    log, _ = r.context.inputs[node.collection]
    filesystem, root = r.context.storage.filesystem(log.uri)
    parts = [_read_file(pq.ParquetFile(filesystem.open_input_file(f"{root}/{f.path}")), wanted) for f in files]
    table = pa.concat_tables(parts, promote_options="permissive")
    inside = pc.and_(pc.greater(table[TIME], r.context.t0), pc.less_equal(table[TIME], r.context.t1))
    table = table.filter(inside)
    table = pa.table({**{id: table[name] for id, name in node.outputs}, DIFF: table[DIFF]})
    types = {column.name: column.type for column in wanted}
    ids = Schema((*(Column(id, types[name]) for id, name in node.outputs), DIFF_COLUMN))
    frame = local_frame(r.context.spark, table, struct(ids))
    return Rows(frame, table.num_rows, positive=inserts_only(files), local=table)


def _read_file(file: pq.ParquetFile, wanted: Schema) -> pa.Table:
    present = [name for name in wanted.names if name in file.schema_arrow.names]
    table = file.read(columns=present)
    for name in wanted.names:
        if name not in present:
            table = table.append_column(name, pa.nulls(table.num_rows))
    return table.select(list(wanted.names))
