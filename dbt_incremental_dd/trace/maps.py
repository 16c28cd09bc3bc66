"""Maps in the order of their keys: an entry's place means nothing to Spark, but tells equal maps apart elsewhere."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def by_key(table: pa.Table) -> pa.Table:
    """The table with the entries of its maps, at all levels of nesting, in the order of their keys."""
    for place, field in enumerate(table.schema):
        if _holds_maps(field.type):
            column = table[place].combine_chunks()
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            sorted_ones = [_by_key(chunk.take(pa.array(np.arange(len(chunk))))) for chunk in chunks]
            table = table.set_column(place, field, pa.chunked_array(sorted_ones, field.type))
    return table


def _holds_maps(kind: pa.DataType) -> bool:
    inner = (kind.field(number).type for number in range(kind.num_fields))
    return pa.types.is_map(kind) or (pa.types.is_nested(kind) and any(map(_holds_maps, inner)))


def _by_key(array: pa.Array) -> pa.Array:
    """Of an array that is no slice."""
    kind, nulls = array.type, pc.is_null(array)
    if not _holds_maps(kind):
        return array
    if pa.types.is_struct(kind):
        parts = [_by_key(array.field(number)) for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=nulls)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, _by_key(array.values), type=kind, mask=nulls)
    keys, items = array.keys, _by_key(array.items)
    if not pa.types.is_nested(keys.type):
        rows = np.repeat(np.arange(len(array)), np.diff(array.offsets.to_numpy()))
        order = pc.sort_indices(pa.table({"row": rows, "key": keys}), [("row", "ascending"), ("key", "ascending")])
        keys, items = keys.take(order), items.take(order)
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=kind, mask=nulls)
