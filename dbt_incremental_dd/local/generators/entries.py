"""``explode``, ``posexplode`` and ``inline``: the entries of arrays, maps and sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dbt_incremental_dd.core.types import INTEGER, Array, Map, Struct, Type
from dbt_incremental_dd.local.expressions import evaluate
from dbt_incremental_dd.local.generators.generator import MANY, Generator, Generators
from dbt_incremental_dd.local.generators.sequences import sequences
from dbt_incremental_dd.local.lists import Lists
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact
from dbt_incremental_dd.local.vectors import MOST_ROWS
from dbt_incremental_dd.logical.expr import Expr

_Columns = list[tuple[pa.Array, Type]]


def _entries(shown: Callable[[_Columns, pa.Array], _Columns]) -> Generator:
    """``shown`` makes the columns of those of the entries and their positions."""

    def generate(
        rows: Table, arguments: Sequence[exp.Expr], outputs: Sequence[str], constants: Constants, *, outer: bool
    ) -> Table:
        if len(arguments) != 1:
            raise NotExact
        lists, types = _lists(rows, arguments[0], constants)
        if len(lists.rows) > MOST_ROWS:
            raise NotExact(MANY)
        counts = np.maximum(lists.lengths, 1) if outer else lists.lengths
        places = np.repeat(np.arange(len(counts)), counts)
        positions = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        is_entry = positions < lists.lengths[places]
        at = pa.array(np.cumsum(is_entry) - 1, pa.int64(), mask=~is_entry)
        values = [(entries.take(at), type) for entries, type in zip(lists.entries, types, strict=True)]
        found = shown(values, pa.array(positions, pa.int32(), mask=~is_entry))
        if len(found) != len(outputs):
            raise NotExact
        columns = [(output, values, type) for output, (values, type) in zip(outputs, found, strict=True)]
        return rows.take(pa.array(places)).with_columns(columns)

    return generate


def _lists(rows: Table, tree: exp.Expr, constants: Constants) -> tuple[Lists, tuple[Type, ...]]:
    """What the array or the map has for each row, and the types of its entries."""
    if isinstance(tree, exp.Anonymous) and str(tree.this).lower() == "sequence":
        return sequences(rows, tree.expressions, constants)
    found = evaluate(rows, Expr.of(tree), constants)
    match found.type:
        case Array():
            return Lists.of(found.data), (found.type.element,)
        case Map():
            return Lists.of(found.data), (found.type.key, found.type.value)
    raise NotExact


def _itself(values: _Columns, positions: pa.Array) -> _Columns:
    return values


def _with_positions(values: _Columns, positions: pa.Array) -> _Columns:
    return [(positions, INTEGER), *values]


def _fields(values: _Columns, positions: pa.Array) -> _Columns:
    """Of structs."""
    found, type = values[0]
    if len(values) > 1 or not isinstance(type, Struct):
        raise NotExact
    return [(pc.struct_field(found, [place]), field.type) for place, field in enumerate(type.fields)]


GENERATORS: Generators = {
    "explode": _entries(_itself),
    "inline": _entries(_fields),
    "posexplode": _entries(_with_positions),
}
