"""The envelope ``upsert`` on the driver, for records and rows whose values Arrow and Spark order alike.

The same as ``upsert`` does in Spark: each key's latest record against the stored row and the tombstone of the key.
Positions are columns of their own here (``dd_p0``, ...), and become one struct again where they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce as fold

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, TIME, Column, Schema
from dbt_incremental_dd.core.types import BINARY
from dbt_incremental_dd.local.expressions import truth
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.logical.expr import Expr
from dbt_incremental_dd.relation.constants import SparkConstants
from dbt_incremental_dd.sources.envelopes.envelope import POSITION, EnvelopeInput
from dbt_incremental_dd.sources.exchange import Records
from dbt_incremental_dd.sources.poll_result import FILE, GONE, ORDER
from dbt_incremental_dd.trace.arrow import (
    BOUNDED_TYPES,
    arrow_type,
    file_type,
    is_ordered,
    is_plain,
    same_values,
    sorted_values,
)
from dbt_incremental_dd.trace.files import matching
from dbt_incremental_dd.trace.local import consolidate_local, find_local, lookup_local, member_mask
from dbt_incremental_dd.trace.log import Log

_DELETED = "dd_deleted"
_THERE = "dd_there"


@dataclass(frozen=True)
class Merged:
    """What records imply: the collection's updates, and those of the tombstones (``dd_k0``, ..., ``dd_position``)."""

    updates: Records
    tombstones: Records


def merge_locally(batch: EnvelopeInput, log: Log | None) -> Merged | None:
    """The records against what is stored; None if Spark has to do it. ``log``: of the tombstones, if
    there are any. Raises SourceError for a NULL key."""
    merge = _Merge.of(batch)
    if merge is None:
        return None
    kept = merge.latest()
    batch.refuse_null_keys({name: kept[name].null_count for name in batch.settings.key})
    old, tombstones = merge.stored(kept), merge.tombstones(kept, log)
    if old is None or tombstones is None:
        return None
    return Merged(merge.updates(kept, old, tombstones), merge.tombstone_updates(kept, tombstones))


def key_values(table: pa.Table, key: Sequence[str]) -> dict[str, list[object]]:
    """Sorted values of key columns, of types that files have bounds for."""
    found = {name: sorted_values(table[name]) for name in key}
    return {name: values for name, values in found.items() if values is not None}


class _Merge:
    """``table``: the source's columns, ``dd_p<i>``, ``dd_deleted``, and perhaps the file."""

    def __init__(self, batch: EnvelopeInput, log: Log, table: pa.Table) -> None:
        self._batch = batch
        self._log = log
        self._table = table
        self._key = batch.settings.key
        self._names = batch.schema.names
        self._position = tuple(f"dd_p{i}" for i in range(len(batch.settings.order_by)))
        self._struct = log.schema.select((POSITION,)).columns[0]
        self._struct_type = file_type(self._struct.type)

    @staticmethod
    def of(batch: EnvelopeInput) -> _Merge | None:
        """The records, if they and what is stored are of types on which Arrow and Spark agree."""
        local, log, settings = batch.records.local, batch.log, batch.settings
        if local is None or log is None or not {*settings.key, *settings.order_by} <= set(local.column_names):
            return None
        types = {column.name: column.type for column in batch.schema}
        plain = is_plain(batch.schema) and BINARY not in types.values()
        if not plain or any(types[name] not in BOUNDED_TYPES for name in settings.key):
            return None
        stored = log.schema.find(POSITION)
        if stored is None or file_type(stored.type) is None or file_type(stored.type) != _position_type(batch):
            return None
        if any(log.schema.find(column.name) != column for column in batch.schema):
            return None
        deleted = _deleted(batch, local)
        if deleted is None:
            return None
        table = local.append_column(_DELETED, deleted)
        for i, name in enumerate(settings.order_by):
            table = table.append_column(f"dd_p{i}", local[name])
        return _Merge(batch, log, table)

    def latest(self) -> pa.Table:
        """Each key's last record, by its position, then by its place in the feed, its file's name, its values."""
        ties = [name for name in (ORDER, FILE, *self._names) if name in self._table.column_names]
        order = list(dict.fromkeys((*self._position, *ties)))
        sortable = pa.table({name: _sortable(self._table[name]) for name in order})
        table = self._table.take(pc.sort_indices(sortable, sort_keys=[(name, "descending") for name in order]))
        numbered = table.select(list(self._key)).append_column("dd_row", pa.array(range(table.num_rows), pa.int64()))
        first = numbered.group_by(list(self._key), use_threads=False).aggregate([("dd_row", "min")])
        return table.take(first["dd_row_min"])

    def stored(self, kept: pa.Table) -> pa.Table | None:
        """For each of the records the row of its key: columns, position, ``dd_there``; None where that is too much."""
        log, schema = self._log, Schema(tuple(c for c in self._log.schema if c.name != TIME))
        return self._found(log, schema, kept, {name: name for name in self._key}, self._names)

    def tombstones(self, kept: pa.Table, log: Log | None) -> pa.Table | None:
        """For each of the records the tombstone of its key: position, ``dd_there``."""
        if log is None:
            return self._nothing(kept, ())
        schema = Schema(tuple(c for c in log.schema if c.name != TIME))
        return self._found(log, schema, kept, {f"dd_k{i}": name for i, name in enumerate(self._key)}, ())

    def _found(
        self, log: Log, schema: Schema, kept: pa.Table, keys: dict[str, str], columns: Sequence[str]
    ) -> pa.Table | None:
        """``keys``: the stored names of the key's columns."""
        values = key_values(kept, self._key)
        wanted = {stored: values[name] for stored, name in keys.items()}
        files = matching(log.files, wanted)
        if not files:
            return self._nothing(kept, columns)
        table = find_local(self._batch.place.storage, log.uri, files, schema, wanted)
        if table is None:
            return None
        table = self._flat(table)
        table = table.rename_columns([keys.get(name, name) for name in table.column_names])
        table = consolidate_local(table, (DIFF,))
        table = table.filter(member_mask(table, kept.select(list(self._key)), self._key))
        table = table.append_column(_THERE, pa.array([True] * table.num_rows, pa.bool_()))
        found = lookup_local(kept, table, self._key, [*columns, *self._position, _THERE])
        return found.set_column(found.num_columns - 1, _THERE, pc.fill_null(found[_THERE], False))

    def _nothing(self, kept: pa.Table, columns: Sequence[str]) -> pa.Table:
        nulls = {name: pa.nulls(kept.num_rows, kept[name].type) for name in (*columns, *self._position)}
        return pa.table({**nulls, _THERE: pa.array([False] * kept.num_rows, pa.bool_())})

    def _flat(self, table: pa.Table) -> pa.Table:
        """The position's fields as columns."""
        struct = table[POSITION].combine_chunks()
        table = table.drop_columns([POSITION])
        for i, name in enumerate(self._position):
            table = table.append_column(name, pc.struct_field(struct, [i]))
        return table

    def updates(self, kept: pa.Table, old: pa.Table, tombstones: pa.Table) -> Records:
        """Minus the old row, plus the new one, of each key whose record is not older than what is known of it."""
        base = {name: pc.if_else(old[_THERE], old[name], tombstones[name]) for name in self._position}
        known = pc.or_(old[_THERE], tombstones[_THERE])
        pairs = [(kept[name], base[name]) for name in self._position]
        newer = pc.or_(pc.invert(known), _at_least(pairs, equal=True))
        same = fold(pc.and_, (same_values(kept[name], old[name]) for name in (*self._names, *self._position)))
        alive = pc.invert(kept[_DELETED])
        moved = pc.and_(newer, pc.invert(pc.and_(pc.and_(alive, old[_THERE]), same)))
        gone = self._stored_form(old.filter(pc.and_(moved, old[_THERE])), self._names, -1)
        come = self._stored_form(kept.filter(pc.and_(moved, alive)), self._names, 1)
        schema = Schema((*self._batch.schema, self._struct, DIFF_COLUMN))
        return self._batch.driver_side(pa.concat_tables([gone, come]), schema)

    def tombstone_updates(self, kept: pa.Table, tombstones: pa.Table) -> Records:
        """The deletes' positions, minus the former ones of the same keys, where they are later."""
        pairs = [(kept[name], tombstones[name]) for name in self._position]
        later = pc.or_(pc.invert(tombstones[_THERE]), _at_least(pairs, equal=False))
        is_new = pc.and_(kept[_DELETED], later)
        names = [f"dd_k{i}" for i in range(len(self._key))]
        keys = {name: kept[own] for name, own in zip(names, self._key, strict=True)}
        new = pa.table({**keys, **{name: kept[name] for name in self._position}})
        former = pa.table({**keys, **{name: tombstones[name] for name in self._position}})
        come = self._stored_form(new.filter(is_new), names, 1)
        gone = self._stored_form(former.filter(pc.and_(is_new, tombstones[_THERE])), names, -1)
        types = {column.name: column.type for column in self._batch.schema}
        columns = (Column(name, types[own]) for name, own in zip(names, self._key, strict=True))
        return self._batch.driver_side(pa.concat_tables([come, gone]), Schema((*columns, self._struct, DIFF_COLUMN)))

    def _stored_form(self, table: pa.Table, names: Sequence[str], diff: int) -> pa.Table:
        """The columns, the position as a struct, and the diff."""
        position = pa.nulls(table.num_rows, self._struct_type)
        if self._position:
            parts = [table[name].combine_chunks() for name in self._position]
            position = pa.StructArray.from_arrays(parts, fields=list(self._struct_type or ()))
        diffs = pa.array([diff] * table.num_rows, pa.int64())
        return pa.table({**{name: table[name] for name in names}, POSITION: position, DIFF: diffs})


def _position_type(batch: EnvelopeInput) -> pa.DataType | None:
    """The Arrow form of the position that the records have; None where Arrow does not order them as Spark does."""
    columns = batch.records.schema.select(batch.settings.order_by)
    if not is_ordered(columns):
        return None
    fields = [(column.name, arrow_type(column.type)) for column in columns]
    return pa.struct(fields or [("dd_none", pa.int32())])


def _deleted(batch: EnvelopeInput, local: pa.Table) -> pa.ChunkedArray | None:
    """Whether each record is a delete; None where Spark has to tell."""
    condition = batch.settings.deleted_when
    nothing = pa.chunked_array([pa.array([False] * local.num_rows, pa.bool_())])
    gone = local[GONE] if GONE in local.column_names else nothing
    if not condition:
        return gone
    try:
        found = truth(Table(local, batch.records.schema), Expr(condition), SparkConstants(batch.spark))
    except NotExact:
        return None
    return pc.or_(gone, pc.fill_null(found, False))


def _sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column


def _at_least(pairs: Sequence[tuple[pa.ChunkedArray, pa.ChunkedArray]], *, equal: bool) -> pa.ChunkedArray | bool:
    """Whether the first of each pair are more than the second, in this order, or ``equal``; NULL is the least."""
    found: pa.ChunkedArray | bool = equal
    for one, other in reversed(pairs):
        more = pc.or_(pc.fill_null(pc.greater(one, other), False), pc.and_(pc.is_valid(one), pc.is_null(other)))
        found = pc.or_(more, pc.and_(same_values(one, other), found))
    return found
