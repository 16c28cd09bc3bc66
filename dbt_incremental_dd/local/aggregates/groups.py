"""The groups of some rows, and what an aggregate function makes of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dbt_incremental_dd.core.types import Type
from dbt_incremental_dd.local.table import Table, group_numbers
from dbt_incremental_dd.local.value import NotExact, Value
from dbt_incremental_dd.local.vectors import MOST_ROWS, Array, flat
from dbt_incremental_dd.trace.arrow import arrow_type


@dataclass(frozen=True)
class Groups:
    """``numbers``: of each row the number of its group, in the order of the rows; there are ``count`` groups, of which
    some may have no row."""

    numbers: Array
    count: int

    @staticmethod
    def of(rows: Table, keys: Sequence[str]) -> Groups:
        """Rows that are equal in the keys; without keys one group, even of no rows."""
        if not keys:
            return Groups(np.zeros(rows.num_rows, np.int64), 1)
        numbers = group_numbers(rows.arrow, keys).to_numpy()
        return Groups(numbers, int(numbers.max()) + 1 if len(numbers) else 0)

    @property
    def sizes(self) -> Array:
        """How many rows each has."""
        return np.bincount(self.numbers, minlength=self.count)

    @property
    def by_group(self) -> Array:
        """The places of all rows, group by group; those of one stay in their order."""
        return np.argsort(self.numbers, kind="stable")

    def where(self, mask: Any) -> Groups:
        """Of these rows alone; all groups stay."""
        return Groups(self.numbers[flat(mask).to_numpy(zero_copy_only=False)], self.count)

    def taken(self, places: Array) -> Groups:
        """Of the rows at these places, in that order."""
        return Groups(self.numbers[places], self.count)


def in_any_order(type: Type) -> bool:
    """``is_ordered`` of an aggregate whose result is the same in any order of the rows."""
    return False


@dataclass(frozen=True)
class Aggregate:
    """``apply`` gives a value of each group, from the groups and the arguments' values, one of each row or a constant.
    It raises NotExact where Spark's value may be another one.

    ``least`` and ``most``: how many arguments it takes. ``drops_nulls``: whether rows whose first argument is NULL do
    not count. ``is_ordered`` says whether the values of an argument's type make another result in another order.
    """

    apply: Callable[..., Value]
    least: int = 1
    most: int = 1
    drops_nulls: bool = True
    is_ordered: Callable[[Type], bool] = lambda type: True


Aggregates = Mapping[str, Aggregate]


def only_where(groups: Groups, values: Sequence[Value], mask: Any) -> tuple[Groups, list[Value]]:
    """The groups and the arguments of these rows alone."""
    kept = [v if isinstance(v.data, pa.Scalar) else Value(v.data.filter(mask), v.type) for v in values]
    return groups.where(mask), kept


def made(groups: Groups, found: Any, type: Type, *, over_nothing: bool = False) -> Value:
    """Values of all groups, as NumPy's arrays or Arrow's; NULL for a group without rows unless ``over_nothing``."""
    array = found if isinstance(found, pa.Array | pa.ChunkedArray) else pa.array(found)
    wanted = arrow_type(type)
    if wanted is None:
        raise NotExact(f"an aggregate that is a {type}")
    array = array.cast(wanted)
    if not over_nothing:
        array = pc.if_else(pa.array(groups.sizes > 0), array, pa.scalar(None, array.type))
    return Value(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]), type)


def lists(groups: Groups, value: Value) -> Iterator[tuple[int, list[Any]]]:
    """The number and the values, as Python's, of each group that has rows."""
    if len(groups.numbers) > MOST_ROWS:
        raise NotExact("many rows, one by one")
    order = groups.by_group
    values = value.data.take(pa.array(order)).to_pylist()
    ends = np.cumsum(groups.sizes).tolist()
    start = 0
    for number, end in enumerate(ends):
        if end > start:
            yield number, values[start:end]
        start = end
