"""Joins on the driver, by Arrow: places of matching rows first, then their columns, whatever these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce as fold
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import DIFF, DIFF_COLUMN, Schema
from dbt_incremental_dd.core.thresholds import Thresholds
from dbt_incremental_dd.core.types import (
    BOOLEAN,
    DATE,
    FLOATS,
    INTEGERS,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    Type,
)
from dbt_incremental_dd.differential.join import Equality
from dbt_incremental_dd.local.comparing import comparable
from dbt_incremental_dd.local.expressions import evaluate, truth
from dbt_incremental_dd.local.floats import canonical
from dbt_incremental_dd.local.table import Table
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import row_numbers
from dbt_incremental_dd.logical.expr import Expr

_ROW = "dd_row"
_LITTLE = 100_000
"""Rows that are joined sooner by one thread than others have begun."""
_NOTHING: dict[Type, Any] = {
    **dict.fromkeys((*INTEGERS, DATE, TIMESTAMP, TIMESTAMP_NTZ), 0),
    STRING: "",
    BOOLEAN: False,
    **dict.fromkeys(FLOATS, 0.0),
}
"""What stands for NULL in a key, beside a column that says so. Arrow joins by these types as Spark does, and by
decimals."""


def joined(
    left: Table,
    right: Table,
    kind: str,
    equalities: Sequence[Equality],
    residual: Sequence[Expr],
    constants: Constants,
    most: Thresholds,
) -> Table:
    """As ``Engine.join`` says. Raises NotExact for equalities of values on whose equality Arrow and Spark do not
    agree, and where there would be more rows than ``most`` says."""
    wanted = [*left.schema.names, *(right.schema.names if kind in ("inner", "left") else ())]
    names = [*dict.fromkeys(name for name in wanted if name != DIFF), DIFF]
    keys = [pair for equality in equalities for pair in _compared(left, right, equality, constants)]

    def matches(rows: Table) -> Table:
        """The inner join; only matching rows are looked at, of which the residual decides."""
        found = _inner(rows, right, keys, most)
        return fold(lambda some, predicate: some.filter(truth(some, predicate, constants)), residual, found)

    if kind == "inner":
        return matches(left).select([(name, name) for name in names])
    numbers = row_numbers(left.num_rows)
    if residual or kind == "left":
        found = matches(left.with_column(_ROW, numbers, LONG))
        places = found.arrow[_ROW].combine_chunks()
    else:
        places = _among(left.num_rows, right.num_rows, keys)
    matched = pc.is_in(numbers, value_set=places)
    if kind != "left":
        return left.filter(matched if kind == "semi" else pc.invert(matched))
    unmatched = left.arrow.filter(pc.invert(matched))
    rows = pa.concat_tables([found.arrow, unmatched], promote_options="default").combine_chunks()
    return found.replaced(rows).select([(name, name) for name in names])


_Keys = Sequence[tuple[pa.Array, pa.Array]]
"""What a join compares: of each row of the left side, and of each of the right one."""


def _compared(left: Table, right: Table, equality: Equality, constants: Constants) -> list[tuple[Any, Any]]:
    one, other = evaluate(left, equality.left, constants), evaluate(right, equality.right, constants)
    one, other = comparable(one, other, constants.time_zone)
    if one.type not in _NOTHING and not isinstance(one.type, Decimal):
        raise NotExact(f"a join by a {one.type}")
    one, other = replace(one, data=canonical(one.data)), replace(other, data=canonical(other.data))
    if not equality.null_safe:
        return [(one.data, other.data)]
    return list(zip(_null_safe(one), _null_safe(other), strict=True))


def _null_safe(value: Value) -> tuple[Any, Any]:
    """Whether it is NULL, and a value in any case."""
    nothing = pa.scalar(_NOTHING.get(value.type, 0), value.data.type)
    return pc.cast(pc.is_null(value.data), pa.int8()), pc.fill_null(value.data, nothing)


def _inner(left: Table, right: Table, keys: _Keys, most: Thresholds) -> Table:
    """The rows of both sides that match, diffs multiplied. Of two columns of one name it has the left one."""
    ours, theirs = _places(left.num_rows, right.num_rows, keys, most)
    own = [column for column in left.schema if column.name != DIFF]
    new = [column for column in right.schema if column.name != DIFF and left.schema.find(column.name) is None]
    columns = {column.name: left.arrow[column.name].take(ours) for column in own}
    columns |= {column.name: right.arrow[column.name].take(theirs) for column in new}
    diffs = pc.multiply_checked(left.arrow[DIFF].take(ours), right.arrow[DIFF].take(theirs))
    return Table(pa.table({**columns, DIFF: diffs}), Schema((*own, *new, DIFF_COLUMN)))


def _places(left: int, right: int, keys: _Keys, most: Thresholds) -> tuple[pa.Array, pa.Array]:
    """The places of matching rows of both sides; of all pairs where there is no key."""
    if not keys:
        _require_few(left * right, most.crossed_rows)
        pairs = row_numbers(left * right)
        ours = pc.divide(pairs, max(right, 1))
        return ours, pc.subtract(pairs, pc.multiply(ours, right))
    if len(keys) == 1 and (found := _of_unique(*keys[0])) is not None:
        return found
    lefts, rights = _sides(keys)
    if left * right > most.joined_rows:
        _require_few_pairs(lefts, rights, most.joined_rows)
    lefts = lefts.append_column(_ROW, row_numbers(left))
    rights = rights.append_column("dd_other", row_numbers(right))
    both = lefts.join(rights, keys=rights.column_names[:-1], join_type="inner", use_threads=left + right > _LITTLE)
    return both[_ROW].combine_chunks(), both["dd_other"].combine_chunks()


def _of_unique(ours: Any, theirs: Any) -> tuple[pa.Array, pa.Array] | None:
    """The places of matching rows, where the values of one side are unique; None where neither's are. A look-up takes
    a fraction of what it takes to begin a join."""
    if _is_unique(theirs):
        return _found_at(ours, theirs)
    if _is_unique(ours):
        at, places = _found_at(theirs, ours)
        return places, at
    return None


def _is_unique(values: Any) -> bool:
    """Whether no value but NULL comes twice. Sorting whole numbers and dates takes a fraction of hashing them."""
    if pa.types.is_integer(values.type) or pa.types.is_temporal(values.type):
        ordered = np.sort(_as_array(values.drop_null()).to_numpy(zero_copy_only=False))
        return not (ordered[1:] == ordered[:-1]).any()
    return bool(pc.count_distinct(values, mode="only_valid").as_py() == len(values) - values.null_count)


def _found_at(values: Any, among: Any) -> tuple[pa.Array, pa.Array]:
    """Which values are there, and where; NULL is nowhere."""
    places = _as_array(pc.index_in(values, value_set=_as_array(among), skip_nulls=True))
    found = pc.is_valid(places)
    return row_numbers(len(places)).filter(found), places.filter(found).cast(pa.int64())


def _as_array(values: Any) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _sides(keys: _Keys) -> tuple[pa.Table, pa.Table]:
    names = [f"k{number}" for number in range(len(keys))]
    lefts, rights = (pa.table(list(side), names) for side in zip(*keys, strict=True))
    return lefts, rights


def _among(left: int, right: int, keys: _Keys) -> pa.Array:
    """The places of the left rows that match any."""
    if not keys:
        return row_numbers(left if right else 0)
    if len(keys) == 1:
        ours, theirs = keys[0]
        return _found_at(ours, theirs)[0]
    lefts, rights = _sides(keys)
    lefts = lefts.append_column(_ROW, row_numbers(left))
    found = lefts.join(rights, keys=rights.column_names, join_type="left semi", use_threads=left + right > _LITTLE)
    return found[_ROW].combine_chunks()


def _require_few(rows: int, most: int) -> None:
    if rows > most:
        raise NotExact("a join of many rows")


def _require_few_pairs(lefts: pa.Table, rights: pa.Table, most: int) -> None:
    """Counts equal rows where the most frequent keys of the sides do not tell that there are few."""
    lefts, rights = lefts.drop_null(), rights.drop_null()
    if min(lefts.num_rows * _most_equal(rights), rights.num_rows * _most_equal(lefts)) > most:
        counted = rights.group_by(rights.column_names).aggregate([([], "count_all")])
        pairs = lefts.join(counted, keys=rights.column_names, join_type="inner")["count_all"]
        _require_few(pc.sum(pairs).as_py() or 0, most)


def _most_equal(keys: pa.Table) -> int:
    """The number of rows that the most frequent key has."""
    if not keys.num_rows:
        return 0
    counted = keys.group_by(keys.column_names).aggregate([([], "count_all")])
    return int(pc.max(counted["count_all"]).as_py())
