"""One of a group's values: the first or the last row's, or that of the row which is greatest or least."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.schema import Column, Schema
from dbt_incremental_dd.core.types import FLOATS
from dbt_incremental_dd.local.aggregates.groups import Aggregate, Aggregates, Groups, made, only_where
from dbt_incremental_dd.local.nested import has_order, numbers
from dbt_incremental_dd.local.value import Constants, NotExact, Value
from dbt_incremental_dd.local.vectors import Array, flat
from dbt_incremental_dd.trace.arrow import is_ordered


def _row(*, is_last: bool) -> Aggregate:
    """The row that comes first, or last; with true as the second argument, of those that are not NULL."""

    def row(groups: Groups, constants: Constants, value: Value, ignores: Value | None = None) -> Value:
        _require_column(value)
        if ignores is not None:
            if not isinstance(ignores.data, pa.Scalar) or ignores.data.as_py() not in (True, False):
                raise NotExact
            if ignores.data.as_py():
                groups, [value] = only_where(groups, [value], pc.is_valid(value.data))
        order = np.arange(len(groups.numbers))
        return _taken(groups, value, _places(groups, order if is_last else order[::-1]))

    return Aggregate(row, 1, 2, drops_nulls=False)


def _places(groups: Groups, order: Array) -> Array:
    """The place of each group's last row in that order; -1 for a group without rows."""
    places = np.full(groups.count, -1, np.int64)
    places[groups.numbers[order]] = order
    return places


def _taken(groups: Groups, value: Value, places: Array) -> Value:
    wanted = pa.array(places, mask=places < 0)
    return made(groups, flat(value.data).take(wanted), value.type)


def _by(*, greatest: bool) -> Aggregate:
    """The value beside the greatest, or least, of others that are not NULL. Of several Spark takes any."""

    def by(groups: Groups, constants: Constants, value: Value, other: Value) -> Value:
        _require_column(value)
        _require_column(other)
        if not (other.type in FLOATS or has_order(other.type) or is_ordered(Schema((Column("x", other.type),)))):
            raise NotExact(f"an order of {other.type}")
        found, [value, other] = only_where(groups, [value, other], pc.is_valid(other.data))
        ranked = numbers(other.data)[0].to_numpy(zero_copy_only=False)
        best = np.full(groups.count, np.iinfo(np.int64).min)
        ranked = ranked if greatest else -ranked
        np.maximum.at(best, found.numbers, ranked)
        matching = np.flatnonzero(ranked == best[found.numbers])
        last = _taken(found, value, _places(found, matching))
        one, other_one = numbers(last.data, _taken(found, value, _places(found, matching[::-1])).data)
        if not one.equals(other_one):
            raise NotExact("several rows are the greatest, or least")
        return last

    return Aggregate(by, 2, 2, drops_nulls=False)


def _require_column(value: Value) -> None:
    if isinstance(value.data, pa.Scalar):
        raise NotExact("an aggregate of a constant")


IGNORING = ("first", "first_value", "any_value", "last", "last_value")
"""Those that IGNORE NULLS may follow."""
AGGREGATES: Aggregates = {
    **dict.fromkeys(("first", "first_value", "any_value"), _row(is_last=False)),
    **dict.fromkeys(("last", "last_value"), _row(is_last=True)),
    "max_by": _by(greatest=True),
    "min_by": _by(greatest=False),
}
