"""Rows on the driver: Arrow tables with Spark's types, and what is computed of them by their columns' equality.

NULL equals NULL throughout.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import DIFF, Column, Schema
from dbt_incremental_dd.core.types import INTEGERS, Type
from dbt_incremental_dd.duck.connections import error
from dbt_incremental_dd.local.floats import canonical
from dbt_incremental_dd.local.nested import decoded, encoded, is_nested, numbers
from dbt_incremental_dd.local.value import NotExact
from dbt_incremental_dd.trace.arrow import is_readable, typed
from dbt_incremental_dd.trace.sums import sums

Pair = tuple[pa.Array, ...]
"""Arrays of one type, a value of each for each row of one of two tables."""
_MANY = 1_000_000
"""Number of rows from which on DuckDB groups them more quickly than Arrow."""
_MOST_CODES = 1 << 62
"""A LONG holds so many different ones, and the sum of two of them."""


class Table:
    """``arrow`` has the columns of ``schema``, each in the one Arrow type that its Spark type has."""

    __slots__ = ("__weakref__", "arrow", "schema")

    def __init__(self, arrow: pa.Table, schema: Schema) -> None:
        self.schema = schema
        self.arrow: pa.Table = typed(arrow, schema)

    @property
    def num_rows(self) -> int:
        """How many rows there are, whatever their diffs."""
        return int(self.arrow.num_rows)

    def type(self, name: str) -> Type:
        """A column's type."""
        return self.schema.select((name,)).columns[0].type

    def replaced(self, arrow: pa.Table) -> Table:
        """Other rows with the same columns."""
        return Table(arrow, self.schema)

    def select(self, pairs: Sequence[tuple[str, str]]) -> Table:
        """The columns (name, source)."""
        types = {column.name: column.type for column in self.schema}
        schema = Schema(tuple(Column(name, types[source]) for name, source in pairs))
        arrow = self.arrow.select([source for _, source in pairs]).rename_columns([name for name, _ in pairs])
        return Table(arrow, schema)

    def with_column(self, name: str, values: pa.ChunkedArray | pa.Array, type: Type) -> Table:
        """One more column."""
        return self.with_columns([(name, values, type)])

    def with_columns(self, columns: Sequence[tuple[str, pa.ChunkedArray | pa.Array, Type]]) -> Table:
        """More columns: their names, values and types."""
        names = [*self.arrow.column_names, *(name for name, _, _ in columns)]
        arrow = pa.table([*self.arrow.columns, *(values for _, values, _ in columns)], names)
        return Table(arrow, Schema((*self.schema.columns, *(Column(name, type) for name, _, type in columns))))

    def filter(self, mask: pa.ChunkedArray | pa.Array) -> Table:
        """The rows for which the mask is true."""
        return self.replaced(self.arrow.filter(mask))

    def take(self, places: pa.Array) -> Table:
        """The rows at these places."""
        return self.replaced(self.arrow.take(places))


def require_comparable(table: Table, columns: Sequence[str]) -> None:
    """Raises NotExact for columns of types that Arrow does not have."""
    if not is_readable(table.schema.select(tuple(columns))):
        raise NotExact("keys of a special type")


def require_alike(table: Table, other: Table, columns: Sequence[str]) -> None:
    """Raises NotExact for columns of types that Arrow does not have, or whose values in the two tables would be cast
    before they are compared; integers of any width compare as they are."""
    require_comparable(table, columns)
    pairs = zip(table.schema.select(tuple(columns)), other.schema.select(tuple(columns)), strict=True)
    if any(one.type != two.type and not {one.type, two.type} <= {*INTEGERS} for one, two in pairs):
        raise NotExact("keys of other types")


def places(table: pa.Table, other: pa.Table, keys: Sequence[str]) -> pa.Array:
    """For each row of ``table`` the place of the row of ``other`` with the same keys, or NULL.

    ``other`` has each key at most once.
    """
    wanted, known = _codes(table, other, keys)
    return pc.index_in(wanted, value_set=known)


def lookup(table: pa.Table, other: pa.Table, keys: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """For each row of ``table``, ``columns`` of the row of ``other`` with the same keys; NULLs where there is none."""
    return other.select(list(columns)).take(places(table, other, keys))


def group_numbers(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The number of each row's group: rows that are equal in ``columns``, in the order in which they first come."""
    codes, _ = _codes(table, table.slice(0, 0), columns)
    return _dense((codes,))[0]


def member_mask(table: pa.Table, keys: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """For each row, whether ``keys`` has a row with the same ``columns``."""
    if len(columns) == 1 and not is_nested(table[columns[0]]):
        one, other = _as_wide(table[columns[0]], keys[columns[0]])
        return pc.is_in(canonical(one), value_set=canonical(other).combine_chunks())
    rows, wanted = _codes(table, keys, columns)
    return pa.chunked_array([pc.is_in(rows, value_set=wanted)])


def _codes(table: pa.Table, other: pa.Table, columns: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """A number for each row of either table; rows have the same one if they are equal in ``columns``."""
    rows = table.num_rows + other.num_rows
    codes: Pair = tuple(pa.repeat(pa.scalar(0, pa.int64()), part.num_rows) for part in (table, other))
    count = 1
    for name in columns:
        pair = _comparable(table[name], other[name])
        found, size = _offsets(pair) or (_dense(pair), rows)
        if count * size > _MOST_CODES:
            codes, found, count, size = _dense(codes), _dense(found), rows, rows
        codes = tuple(pc.add(pc.multiply(code, size), part) for code, part in zip(codes, found, strict=True))
        count *= size
    return codes[0], codes[1]


def _comparable(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Pair:
    """The values of two columns that are alike as some that Arrow compares."""
    if is_nested(one):
        return tuple(numbers(one, other))
    return tuple(canonical(column).combine_chunks() for column in _as_wide(one, other))


def _as_wide(one: pa.ChunkedArray, other: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Integers of two widths as the widest ones; columns of one type as they are."""
    return (one, other) if one.type == other.type else (one.cast(pa.int64()), other.cast(pa.int64()))


def _dense(pair: Pair) -> Pair:
    """The place of each value among the different ones, in the order in which they first come."""
    values = pc.unique(pa.chunked_array(pair))
    return tuple(pc.index_in(part, value_set=values).cast(pa.int64()) for part in pair)


def _offsets(pair: Pair) -> tuple[Pair, int] | None:
    """How far each value is from the least, with NULL behind all of them, and how many such numbers there may be. No
    value has to be looked for. Returns None for other values than whole numbers and dates, and for too wide a range."""
    kind = pair[0].type
    if pa.types.is_date32(kind):
        pair = tuple(part.cast(pa.int32()) for part in pair)
    elif not pa.types.is_signed_integer(kind):
        return None
    bounds = pc.min_max(pa.chunked_array(pair)).as_py()
    if bounds["min"] is None:
        return tuple(pa.repeat(pa.scalar(0, pa.int64()), len(part)) for part in pair), 1
    least, beyond = bounds["min"], bounds["max"] - bounds["min"] + 1
    if beyond >= _MOST_CODES:
        return None
    return tuple(pc.fill_null(pc.subtract(part.cast(pa.int64()), least), beyond) for part in pair), beyond + 1


def consolidate(table: Table, diffs: Sequence[str] = (DIFF,)) -> Table:
    """Sums the diffs of equal rows and drops rows whose diffs are all zero. Raises NotExact for special types."""
    require_comparable(table, table.schema.names)
    return table.replaced(consolidate_arrow(table.arrow, diffs))


def consolidate_arrow(table: pa.Table, diffs: Sequence[str]) -> pa.Table:
    """The same for whoever has no schema. As with Spark, NaN equals NaN, and -0.0 becomes 0.0."""
    data = [name for name in table.column_names if name not in diffs]
    table, nested = encoded(normalized(table), data)
    types = {name: table.schema.field(name).type for name in diffs}
    if data and table.num_rows >= _MANY and (found := _summed_by_duckdb(table, diffs)) is not None:
        summed = found
    elif data:
        summed = table.group_by(data, use_threads=False).aggregate([(name, "sum") for name in diffs])
        summed = summed.rename_columns([n.removesuffix("_sum") if n not in data else n for n in summed.column_names])
    else:
        totals = {name: pa.array([pc.sum(table[name]).as_py() or 0], types[name]) for name in diffs}
        summed = pa.table(totals)
    columns = [summed[name].cast(types[name]) if name in types else summed[name] for name in table.column_names]
    summed = pa.table(dict(zip(table.column_names, columns, strict=True)))
    kept = None
    for name in diffs:
        nonzero = pc.not_equal(summed[name], pa.scalar(0).cast(types[name]))
        kept = nonzero if kept is None else pc.or_(kept, nonzero)
    return decoded(summed if kept is None else summed.filter(kept), nested)


def _summed_by_duckdb(table: pa.Table, diffs: Sequence[str]) -> pa.Table | None:
    """The sums, computed on all cores; None for what DuckDB does not take, such as text that is not UTF-8."""
    try:
        return sums(table, diffs)
    except (error(), pa.ArrowException):
        return None


def normalized(table: pa.Table) -> pa.Table:
    """The table with one NaN and one zero only, because Arrow groups floats by their bits."""
    for index, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(index, field.name, canonical(table.column(index)))
    return table
